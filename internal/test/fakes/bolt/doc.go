// Package bolt is a database server for tests: it speaks enough of Bolt 5.0 to 5.8 for a real driver to work with it,
// and answers statements by functions.
//
//	s := bolt.Start(t, bolt.Options{Password: "secret-password"})
//	s.Handle("RETURN 1 AS ok", bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer {
//		return bolt.Answer{Columns: []string{"ok"}, Rows: [][]any{{int64(1)}}}
//	}})
//	driver, err := neo4j.NewDriverWithContext(s.URL("bolt"), neo4j.BasicAuth("neo4j", "secret-password", ""))
//
// It behaves as Neo4j 5.26.2 does, as far as it goes: what it says to a wrong password, to three of them, to a write in
// read mode, to an unknown statement and a missing parameter, when a transaction takes too long, and after a failure
// until RESET. What it does not know: Cypher.
package bolt
