package memos

import "slices"

// deleteMemory has exactly one of three modes. By ids it always says success and asks for no cube; by filter, user or
// session it deletes and says that it failed.
func (s *Server) deleteMemory(in object) (string, any, *problem) {
	ids, byIDs := in["memory_ids"].([]any)
	if session, other := text(in, "session_id"), text(in, "conversation_id"); session != "" && other != "" &&
		session != other {
		return "", nil, &problem{status: 500, message: "Object of type ValueError is not JSON serializable"}
	}
	byFilter := in["filter"] != nil || text(in, "user_id") != "" || text(in, "session_id") != "" ||
		text(in, "conversation_id") != ""
	if byIDs == byFilter {
		return "Exactly one delete mode must be provided: memory_ids, file_ids, or filter/user_id/session_id.",
			object{"status": "failure"}, nil
	}
	if byIDs {
		if !s.faults.DatabaseDown {
			s.drop(func(n *node) bool { return slices.Contains(ids, any(n.id)) })
		}
		return "Memories deleted successfully", object{"status": "success"}, nil
	}
	f, p := readFilter(in)
	if p != nil {
		return "", nil, p
	}
	if s.options.Flavour == Community && slices.IndexFunc(f.conds, func(c cond) bool { return c.op == "" }) < 0 {
		// A filter of contains, in and like alone is dropped there, and everything goes.
		f.conds = nil
	}
	cubes := texts(in, "writable_cube_ids")
	session := text(in, "session_id") + text(in, "conversation_id")
	if !s.faults.DatabaseDown {
		s.drop(func(n *node) bool {
			return (len(cubes) == 0 || slices.Contains(cubes, n.cube)) && f.matches(n) &&
				(text(in, "user_id") == "" || n.userID == text(in, "user_id")) &&
				(session == "" || n.sessionID == session)
		})
	}
	return "Failed to delete memories", object{"status": "failure"}, nil
}

func (s *Server) drop(which func(*node) bool) { s.nodes = slices.DeleteFunc(s.nodes, which) }

// deleteByRecord marks a cube's nodes, or removes those with the mark. Nodes that carry another mark are left.
func (s *Server) deleteByRecord(in object) (string, any, *problem) {
	if s.faults.DatabaseDown {
		return "", nil, &problem{status: 500, message: driverError}
	}
	cube, record := text(in, "mem_cube_id"), text(in, "record_id")
	if truth(in, "hard_delete", false) {
		s.drop(func(n *node) bool { return n.cube == cube && n.deleteRecord == record })
	} else {
		for _, n := range s.nodes {
			if n.cube == cube && n.delete == "" {
				n.status, n.delete, n.deleteRecord = "deleted", s.stamp(), record
			}
		}
	}
	return "Called Successfully", object{"status": "success"}, nil
}

func (s *Server) recoverByRecord(in object) (string, any, *problem) {
	if s.faults.DatabaseDown {
		return "", nil, &problem{status: 500, message: driverError}
	}
	for _, n := range s.nodes {
		if n.cube == text(in, "mem_cube_id") && n.deleteRecord == text(in, "delete_record_id") {
			n.status, n.delete, n.deleteRecord = "activated", "", ""
		}
	}
	return "Called Successfully", object{"status": "success"}, nil
}
