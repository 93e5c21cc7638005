package llm

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// Graphiti (graphiti-core 0.31.2, graphiti_core/prompts): the JSON schema's name says which call it is, and the prompts
// carry their parts in tags.
var graphitiRules = []promptRule{
	graphitiRule("graphiti.entities", "ExtractedEntities", graphitiEntities),
	graphitiRule("graphiti.edges", "ExtractedEdges", graphitiEdges),
	graphitiRule("graphiti.combined", "CombinedExtraction", graphitiCombined),
	graphitiRule("graphiti.dedupe_nodes", "NodeResolutions", graphitiResolveNodes),
	graphitiRule("graphiti.resolve_edge", "EdgeDuplicate", graphitiResolveEdge),
	graphitiRule("graphiti.timestamps", "EdgeTimestamps", func(*Prompt, string) Answer {
		return Answer{Text: `{"valid_at":null,"invalid_at":null}`}
	}),
	graphitiRule("graphiti.timestamps_batch", "BatchEdgeTimestamps", func(_ *Prompt, text string) Answer {
		list := []any{}
		for _, f := range jsonList(tagged(text, "FACTS")) {
			valid := f["reference_time"]
			if fact, _ := f["fact"].(string); someday.MatchString(fact) || valid == "unknown" {
				valid = nil
			}
			list = append(list, map[string]any{"valid_at": valid, "invalid_at": nil})
		}
		return Answer{Text: toJSON(map[string]any{"timestamps": list})}
	}),
	graphitiRule("graphiti.summaries", "SummarizedEntities", graphitiSummaries),
	graphitiRule("graphiti.saga", "SagaSummary", func(_ *Prompt, text string) Answer {
		var facts []string
		for _, s := range episodeStatements(tagged(text, "MESSAGES")) {
			facts = append(facts, s.Fact+".")
		}
		return Answer{Text: toJSON(map[string]any{"summary": clip(strings.Join(facts, " "), 900)})}
	}),
	{purpose: "graphiti.cross_encoder", match: func(p *Prompt, text string) bool {
		return strings.Contains(text, "<PASSAGE>") && strings.Contains(text, "<QUERY>")
	}, answer: func(p *Prompt, _ string) Answer {
		if crossScore(p) >= 0.2 {
			return Answer{Text: "True"}
		}
		return Answer{Text: "False"}
	}},
}

// graphitiRule matches a schema by its name, or by its title if the schema is only in the text (json_object mode).
func graphitiRule(purpose, schema string, answer func(*Prompt, string) Answer) promptRule {
	title := regexp.MustCompile(`"title": ?"` + schema + `"`)
	return promptRule{purpose: purpose, answer: answer, match: func(p *Prompt, text string) bool {
		return p.SchemaName == schema || p.SchemaName == "" && p.JSON && title.MatchString(text)
	}}
}

// The types are printed as Python prints them. Speakers are of the type Person if it is offered.
var personType = regexp.MustCompile(`'entity_type_id': (\d+), 'entity_type_name': 'Person'`)

type graphitiEntity struct {
	Name     string `json:"name"`
	Type     int    `json:"entity_type_id"`
	Episodes []int  `json:"episode_indices"`
}

func graphitiEntities(p *Prompt, text string) Answer {
	return Answer{Text: toJSON(map[string]any{"extracted_entities": entitiesOf(text)})}
}

// entitiesOf names the speakers first, then what each statement of a user is about.
func entitiesOf(text string) []graphitiEntity {
	list, seen := []graphitiEntity{}, map[string]bool{}
	add := func(name string, kind int) {
		if name != "" && !seen[strings.ToLower(name)] {
			seen[strings.ToLower(name)] = true
			list = append(list, graphitiEntity{Name: name, Type: kind, Episodes: []int{0}})
		}
	}
	person := 0 // the type of everything, if no custom one is offered
	if m := personType.FindStringSubmatch(tagged(text, "ENTITY TYPES")); m != nil {
		person, _ = strconv.Atoi(m[1])
	}
	message := currentMessage(text)
	for _, t := range episodeTurns(message) {
		add(t.Speaker, person)
	}
	for _, s := range episodeStatements(message) {
		add(entityOf(s), 0)
	}
	return list
}

// graphitiCombined answers the call that a bulk makes since 0.31 for entities and facts together. Times of the facts are a
// separate call.
func graphitiCombined(p *Prompt, text string) Answer {
	entities, names := entitiesOf(text), []string{}
	for _, e := range entities {
		names = append(names, e.Name)
	}
	return Answer{Text: toJSON(map[string]any{"extracted_entities": entities, "edges": edgesOf(text, names)})}
}

type graphitiEdge struct {
	Source   string  `json:"source_entity_name"`
	Target   string  `json:"target_entity_name"`
	Relation string  `json:"relation_type"`
	Fact     string  `json:"fact"`
	Valid    *string `json:"valid_at"`
	Invalid  *string `json:"invalid_at"`
	Episodes []int   `json:"episode_indices"`
}

func graphitiEdges(p *Prompt, text string) Answer {
	return Answer{Text: toJSON(map[string]any{"edges": edgesOf(text, entityNames(tagged(text, "ENTITIES")))})}
}

// edgesOf makes one fact of each statement of a user, from the speaker to what it is about, both among the entities,
// valid from the reference time if the prompt has one.
func edgesOf(text string, entities []string) []graphitiEdge {
	known := map[string]string{} // lower-cased: as Graphiti spells it
	for _, name := range entities {
		known[strings.ToLower(name)] = name
	}
	var valid *string
	// "2026-04-21 08:00:00+00:00  # ISO 8601 ...": a time as Python prints it, and a comment.
	at, _, _ := strings.Cut(tagged(text, "REFERENCE_TIME"), "#")
	if at = strings.Replace(strings.TrimSpace(at), " ", "T", 1); at != "" {
		valid = &at
	}
	list, seen := []graphitiEdge{}, map[string]bool{}
	for _, s := range episodeStatements(currentMessage(text)) {
		source, target := known[strings.ToLower(s.Speaker)], known[strings.ToLower(entityOf(s))]
		if source == "" || target == "" || source == target || seen[s.Fact] {
			continue
		}
		seen[s.Fact] = true
		from := valid
		if someday.MatchString(s.Text) {
			from = nil // a wish has no time: Graphiti then asks for one, and stores the fact without dates
		}
		list = append(list, graphitiEdge{Source: source, Target: target, Relation: s.Relation, Fact: s.Fact, Valid: from,
			Episodes: []int{0}})
	}
	return list
}

var someday = regexp.MustCompile(`(?i)\b(?:someday|some day|one day)\b`)

// graphitiResolveNodes takes an entity for a candidate when their names are the same without regard to case.
func graphitiResolveNodes(p *Prompt, text string) Answer {
	candidates := map[string]int{}
	for _, c := range jsonList(tagged(text, "EXISTING ENTITIES")) {
		name, _ := c["name"].(string)
		if id, ok := c["candidate_id"].(float64); ok {
			candidates[strings.ToLower(name)] = int(id)
		}
	}
	list := []any{}
	for i, e := range jsonList(tagged(text, "ENTITIES")) {
		name, _ := e["name"].(string)
		id := i
		if n, ok := e["id"].(float64); ok {
			id = int(n)
		}
		candidate, ok := candidates[strings.ToLower(name)]
		if !ok {
			candidate = -1
		}
		list = append(list, map[string]any{"id": id, "name": name, "duplicate_candidate_id": candidate})
	}
	return Answer{Text: toJSON(map[string]any{"entity_resolutions": list})}
}

// graphitiResolveEdge finds the facts that say the same in the same words, and those that the new fact replaces.
func graphitiResolveEdge(p *Prompt, text string) Answer {
	fact := tagged(text, "NEW FACT")
	newer, _ := Read("", fact)
	duplicates, contradicted := []int{}, []int{}
	for _, old := range indexedFacts(tagged(text, "EXISTING FACTS")) {
		if strings.Join(Tokens(old.fact), " ") == strings.Join(Tokens(fact), " ") {
			duplicates = append(duplicates, old.index)
		}
	}
	for _, block := range []string{"EXISTING FACTS", "FACT INVALIDATION CANDIDATES"} {
		for _, old := range indexedFacts(tagged(text, block)) {
			older, _ := Read("", old.fact)
			if subjectOf(old.fact) == subjectOf(fact) && newer.Replaces(older) {
				contradicted = append(contradicted, old.index)
			}
		}
	}
	return Answer{Text: toJSON(map[string]any{"duplicate_facts": duplicates, "contradicted_facts": contradicted})}
}

// graphitiSummaries gives for each entity what the statements that name it say.
func graphitiSummaries(p *Prompt, text string) Answer {
	statements := episodeStatements(tagged(text, "MESSAGES"))
	list := []any{}
	for _, name := range entityNames(tagged(text, "ENTITIES")) {
		var facts []string
		for _, s := range statements {
			if strings.Contains(strings.ToLower(s.Fact), strings.ToLower(name)) {
				facts = append(facts, s.Fact+".")
			}
		}
		if len(facts) > 0 {
			list = append(list, map[string]any{"name": name, "summary": clip(strings.Join(facts, " "), 900)})
		}
	}
	return Answer{Text: toJSON(map[string]any{"summaries": list})}
}

// currentMessage is the episode that a prompt is about. Its tag has three spellings; texts and JSON episodes have their
// own.
func currentMessage(text string) string {
	for _, name := range []string{"CURRENT MESSAGE", "CURRENT_MESSAGE", "CURRENT MESSAGES", "TEXT", "JSON"} {
		if inside := tagged(text, name); inside != "" {
			return inside
		}
	}
	return ""
}

var anySpeaker = regexp.MustCompile(`^([^:\n]{1,120}): (.*)$`)

// episodeTurns reads an episode: "name(role): text", "name: text", or a text without a speaker, which is taken for the
// user's.
func episodeTurns(message string) []Turn {
	if turns := Turns(message); len(turns) > 0 {
		for i := range turns {
			if turns[i].Speaker == "" {
				turns[i].Speaker = turns[i].Role
			}
		}
		return turns
	}
	if m := anySpeaker.FindStringSubmatch(firstLine(message)); m != nil {
		_, rest, _ := strings.Cut(message, ": ")
		return []Turn{{Role: "user", Speaker: m[1], Text: rest}}
	}
	if strings.TrimSpace(message) == "" {
		return nil
	}
	return []Turn{{Role: "user", Speaker: "user", Text: message}}
}

func episodeStatements(message string) []Statement { return statements(episodeTurns(message), "") }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// entityOf names what a statement is about: the last three content words of its object, as they were spelt.
func entityOf(s Statement) string {
	var words []string
	for _, w := range strings.FieldsFunc(s.Object, func(r rune) bool {
		return !isWordRune(r) && r != '-' && r != '\'' && r != '’'
	}) {
		if !functionWords[strings.ToLower(w)] {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return s.Object
	}
	name := strings.Join(words[max(0, len(words)-3):], " ")
	if strings.EqualFold(name, s.Speaker) {
		return name + " (thing)"
	}
	return name
}

// subjectOf is the first word of a fact, without a genitive: the speaker's name as thirdPerson puts it.
func subjectOf(fact string) string {
	word, _, _ := strings.Cut(fact, " ")
	return strings.TrimSuffix(strings.TrimSuffix(word, ":"), "'s")
}

type indexedFact struct {
	index int
	fact  string
}

// The lists of facts are printed as Python prints them: [{'idx': 0, 'fact': 'mara likes tea'}], with double quotes if
// the text has a single one.
var pythonFact = regexp.MustCompile(`'idx': (\d+), 'fact': (?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")`)

func indexedFacts(text string) []indexedFact {
	var out []indexedFact
	for _, m := range pythonFact.FindAllStringSubmatch(text, -1) {
		index, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		fact := m[2] + m[3]
		fact = strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`, `\n`, "\n").Replace(fact)
		out = append(out, indexedFact{index, fact})
	}
	return out
}

// jsonList reads a JSON list of objects; anything else gives none.
func jsonList(text string) []map[string]any {
	var list []map[string]any
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	return list
}

// entityNames reads a JSON list of entities or of names.
func entityNames(text string) []string {
	var out []string
	for _, e := range jsonList(text) {
		if name, ok := e["name"].(string); ok {
			out = append(out, name)
		}
	}
	if out == nil {
		_ = json.Unmarshal([]byte(text), &out)
	}
	return out
}

// score of a document for a query, 0 to 1, with two decimals.
func score(query, document string) string {
	return strconv.FormatFloat(max(0, Cosine(Embed(query, 1024), Embed(document, 1024))), 'f', 2, 64)
}

// crossScore is the cosine of the query and the passage of Graphiti's cross encoder prompt, not below 0.
func crossScore(p *Prompt) float64 {
	text := p.Text()
	return max(0, Cosine(Embed(tagged(text, "QUERY"), 1024), Embed(tagged(text, "PASSAGE"), 1024)))
}

func itoa(n int) string { return strconv.Itoa(n) }
