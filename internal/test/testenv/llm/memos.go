package llm

import (
	"encoding/json"
	"regexp"
	"strings"
)

// MemOS 2.0.33 (memos/templates): one user message, no tools, no schema; the answer is read from text. A word of the
// demanded output distinguishes the calls, and the payload is at the end between two marks, which are Chinese if the
// conversation is.
var memosRules = []promptRule{
	memosRule("memos.feedback_keyword", `"if_keyword_replace"`, func(string) string {
		return `{"if_keyword_replace":"false","doc_scope":null,"original":null,"target":null}`
	}),
	memosRule("memos.feedback_judgement", `"user_attitude"`, memosJudgement),
	memosRule("memos.feedback_approval", `operations_judgement`, memosApproval),
	memosRule("memos.feedback_compare", `"operations"`, memosCompare),
	memosRule("memos.goal", `"goal_type"`, memosGoal),
	memosRule("memos.recall", `"trigger_recall"`, func(string) string { return `{"trigger_recall":false,"hint":""}` }),
	{purpose: "memos.enhance", match: func(_ *Prompt, text string) bool {
		return strings.Contains(text, "## Original Memories") && strings.Contains(text, "<answer>")
	}, answer: func(_ *Prompt, text string) Answer {
		memories, _ := between(text, "## Original Memories", "Final Output")
		var lines []string
		for _, line := range strings.Split(memories, "\n") {
			if line = strings.TrimSpace(listMark.ReplaceAllString(line, "")); line != "" {
				lines = append(lines, "- "+line)
			}
		}
		return Answer{Text: "<answer>\n" + strings.Join(lines, "\n") + "\n</answer>"}
	}},
	{purpose: "memos.tool_trajectory", match: func(_ *Prompt, text string) bool {
		return strings.Contains(text, "<messages>") && strings.Contains(text, `"trajectory"`)
	}, answer: func(_ *Prompt, text string) Answer { return Answer{Text: memosTrajectory(text)} }},
	memosRule("memos.preference_explicit", `"explicit_preference"`, memosExplicit),
	memosRule("memos.preference_implicit", `"implicit_preference"`, memosImplicit),
	memosRule("memos.skill_tasks", `"message_indices"`, func(string) string {
		return `[{"task_id":1,"task_name":"task with tools","message_indices":[[0,30]],"reasoning":"one task"}]`
	}),
	memosRule("memos.skill", `"procedure"`, memosSkill),
	memosRule("memos.extract", `"memory list"`, memosExtract),
	{purpose: "memos.suggest", match: func(_ *Prompt, text string) bool {
		return strings.Contains(text, "suggestion query") || strings.Contains(text, "建议查询")
	}, answer: func(*Prompt, string) Answer { return Answer{Text: `{"query":["What do I like?"]}`} }},
}

func memosRule(purpose, mark string, answer func(text string) string) promptRule {
	return promptRule{purpose: purpose,
		match:  func(_ *Prompt, text string) bool { return strings.Contains(text, mark) },
		answer: func(_ *Prompt, text string) Answer { return Answer{Text: answer(text)} }}
}

// payload is the text between the first pair of marks.
func payload(text string, marks ...[2]string) string {
	for _, m := range marks {
		if inside, ok := between(text, m[0], m[1]); ok {
			return strings.TrimSpace(inside)
		}
	}
	return ""
}

var listMark = regexp.MustCompile(`^\s*(?:[-*]|\d+[.):]|\[\d+\])\s*`)

// memosTurns reads the lines of a conversation; a payload without any is one message of the user.
func memosTurns(conversation string) []Turn {
	if turns := Turns(conversation); len(turns) > 0 {
		return turns
	}
	return []Turn{{Role: "user", Speaker: "user", Text: conversation}}
}

func memosExtract(text string) string {
	conversation := payload(text, [2]string{"\nConversation:\n", "\nYour Output:"}, [2]string{"\n对话：\n", "您的输出："},
		[2]string{"\nDocument chunk:\n", "\nYour Output:"}, [2]string{"\n文档片段：\n", "您的输出："},
		[2]string{"\nText chunk:\n", "\nYour output:"})
	custom := customTags(text)
	list, summary := []any{}, []string{}
	for _, s := range statements(memosTurns(conversation), "The user") {
		value := memosValue(s)
		list = append(list, map[string]any{"key": clip(s.Text, 40), "memory_type": "UserMemory", "value": value,
			"tags": append(append([]string{}, custom...), keywords(s.Text, 3)...)})
		summary = append(summary, value)
	}
	return toJSON(map[string]any{"memory list": list, "summary": strings.Join(summary, " ")})
}

// memosValue says a statement of "the user" by name, with its full stop; what the rules do not know, and Chinese, stays
// as it was said.
func memosValue(s Statement) string {
	if s.Relation == "SAID" || strings.IndexFunc(s.Text, isIdeograph) >= 0 ||
		strings.HasPrefix(s.Fact, s.Speaker+": ") {
		return s.Text
	}
	end := s.Text[len(strings.TrimRight(s.Text, ".!")):]
	return s.Fact + end
}

// customTags are the tags that a caller asks for, as the extraction prompt lists them.
func customTags(text string) []string {
	inside, ok := between(text, "Output tags can refer to the following tags:\n", "\n")
	if !ok {
		return nil
	}
	var tags []string
	_ = json.Unmarshal([]byte(strings.ReplaceAll(strings.TrimSpace(inside), "'", `"`)), &tags)
	return tags
}

func memosExplicit(text string) string {
	conversation := payload(text, [2]string{"\nInput:\n", "Find ALL"}, [2]string{"\n输入：\n", "找出所有"})
	list := []any{}
	for _, s := range statements(memosTurns(conversation), "The user") {
		if s.Preference {
			list = append(list, map[string]any{"explicit_preference": memosValue(s),
				"context_summary": "In conversation the user stated a standing wish: " + memosValue(s),
				"reasoning":       "said in so many words", "topic": topicOf(s)})
		}
	}
	return toJSON(list)
}

func memosImplicit(text string) string {
	conversation := payload(text, [2]string{"\nConversation:\n", "Output format"}, [2]string{"\n对话：\n", "输出格式"})
	for _, s := range statements(memosTurns(conversation), "The user") {
		if again.MatchString(s.Text) {
			return toJSON([]any{map[string]any{"implicit_preference": "Wants it as before: " + s.Text,
				"context_summary": "The user asked for it again: " + s.Text, "reasoning": "repeated choice",
				"topic": topicOf(s)}})
		}
	}
	return "[]"
}

var again = regexp.MustCompile(`(?i)\bagain\b|\bas (?:ever|always)\b|再次|又`)

func topicOf(s Statement) string {
	if len(s.Topics) > 0 {
		return s.Topics[0]
	}
	return "general"
}

func memosTrajectory(text string) string {
	conversation, _ := between(text, "<messages>", "</messages>")
	runes := []rune(strings.TrimSpace(conversation))
	tool := "tool"
	if m := toolName.FindStringSubmatch(conversation); m != nil {
		tool = m[1]
	}
	return toJSON([]any{map[string]any{"correctness": "success", "trajectory": "task -> tool call -> result: " +
		string(runes[max(0, len(runes)-200):]),
		"experience": "Calling " + tool + " works.",
		"tool_used_status": []any{map[string]any{"used_tool": tool, "success_rate": "1.0", "error_type": "",
			"tool_experience": "Calling " + tool + " works."}}}})
}

var toolName = regexp.MustCompile(`\\?"name\\?": ?\\?"([\w.-]+)`)

func memosSkill(text string) string {
	conversation := payload(text, [2]string{"# Conversation Messages\n", "# Core Principles"},
		[2]string{"# 对话消息\n", "# 核心原则"})
	about := strings.Join(keywords(conversation, 4), " ")
	return toJSON(map[string]any{"name": "Task with tools", "description": "A task that is done by calling tools: " +
		about, "procedure": "1. Read the wish 2. Call the tool 3. Report",
		"experience": []string{"Call one tool at a time"}, "preference": []string{}, "examples": []string{},
		"tags": keywords(conversation, 3), "scripts": nil, "others": nil,
		"update": false, "old_memory_id": "", "whether_use_chat_history": false, "content_of_related_chat_history": ""})
}

func memosGoal(text string) string {
	question := payload(text, [2]string{"Task description(User Question):\n\"\"\"", "\"\"\""})
	words := keywords(question, 5)
	return toJSON(map[string]any{"keys": words, "tags": words, "goal_type": "retrieval", "rephrased_instruction": "",
		"internet_search": false, "memories": []string{question}})
}

// memosJudgement takes feedback with a statement in it for a correction; a question is none.
func memosJudgement(text string) string {
	feedback := payload(text, [2]string{"\nUser Feedback:\n", "\nOutput:"}, [2]string{"\n用户反馈：\n", "\n输出："})
	for _, s := range ReadAll("The user", feedback) {
		corrected := correctionLead.ReplaceAllString(s.Text, "")
		if corrected == "" {
			continue
		}
		runes := []rune(corrected)
		corrected = strings.ToUpper(string(runes[:1])) + string(runes[1:])
		return toJSON([]any{map[string]any{"validity": "true", "user_attitude": "dissatisfied",
			"corrected_info": corrected, "key": clip(corrected, 40), "tags": keywords(corrected, 3)}})
	}
	return `[{"validity":"false","user_attitude":"irrelevant","corrected_info":"","key":"","tags":[]}]`
}

var correctionLead = regexp.MustCompile(`^(?i)(?:no|actually|wrong|that is wrong|that's wrong)[,.:] *`)

var memoryLine = regexp.MustCompile(`^"?([0-9a-fA-F][0-9a-fA-F-]{2,})"?: "?(.*?)"?$`)

// memosCompare updates the stored memory that shares most words with the new fact (at least two, or half of it); the
// others stay. None: the fact is added.
func memosCompare(text string) string {
	current := payload(text, [2]string{"**Current Memories**\n", "**The background"},
		[2]string{"**当前记忆：**\n", "**新事实提出的背景"})
	fact := strings.Trim(payload(text, [2]string{"**Newly facts**\n", "\nOperation recommendations"},
		[2]string{"**新事实：**\n", "\n操作建议"}), "\" \n")
	operations, best, bestShare := []map[string]any{}, -1, 0.0
	words := map[string]bool{}
	for _, w := range Tokens(fact) {
		words[w] = true
	}
	for _, line := range strings.Split(current, "\n") {
		m := memoryLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		shared, all := 0, 0
		for _, w := range Tokens(m[2]) {
			all++
			if words[w] {
				shared++
			}
		}
		share := float64(shared) / float64(max(all, 1))
		if (shared >= 2 || share >= 0.5) && share > bestShare {
			best, bestShare = len(operations), share
		}
		operations = append(operations, map[string]any{"id": m[1], "text": m[2], "operation": "NONE"})
	}
	if best >= 0 {
		operations[best]["operation"], operations[best]["old_memory"], operations[best]["text"] = "UPDATE",
			operations[best]["text"], fact
	} else {
		operations = append(operations, map[string]any{"id": "001", "text": fact, "operation": "ADD"})
	}
	return toJSON(map[string]any{"operations": operations})
}

func memosApproval(text string) string {
	list := payload(text, [2]string{"Input operations list:\n", "\nSafety assessment output:"},
		[2]string{"输入操作列表：\n", "\n安全评估输出"})
	var input struct {
		Operations []struct {
			ID string `json:"id"`
		} `json:"operations"`
	}
	_ = json.Unmarshal([]byte(list), &input)
	out := []any{}
	for _, o := range input.Operations {
		out = append(out, map[string]any{"id": o.ID, "reason": "the same matter", "judgement": "UPDATE_APPROVED"})
	}
	return toJSON(map[string]any{"operations_judgement": out})
}
