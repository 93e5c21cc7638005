package llm

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Statement is one sentence of one speaker, read by the rules.
type Statement struct {
	Speaker string
	// Text is the sentence as it was said, without surrounding blanks.
	Text string
	// Relation is the verb's name in capitals (PREFERS, LIVES_IN, IS_CALLED), SAID if no rule knows the verb.
	Relation string
	// Object is what the verb is about, without the final punctuation.
	Object string
	// Fact says the same of the speaker by name: "I like tea." of mara is "mara likes tea".
	Fact string
	// Topics are what a later statement of the same speaker can replace: a change to the seat does not touch the tea.
	Topics []string
	// Change: the statement says that something is different from before ("now", "no longer", "moved to").
	Change bool
	// Lasting: it speaks of the speaker's likes, habits, relations or circumstances, so that it is worth keeping.
	Lasting bool
	// Preference: it speaks of a like or a dislike.
	Preference bool
}

// Sentences splits a text at sentence ends and line ends. A full stop ends a sentence only before a blank, and not
// after an initial, a title or a number that is followed by a lower-case letter.
func Sentences(text string) []string {
	var out []string
	start := 0
	emit := func(end int) {
		if s := strings.TrimSpace(text[start:end]); strings.IndexFunc(s, isWordRune) >= 0 {
			out = append(out, s)
		}
		start = end
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		next := i + size
		switch r {
		case '。', '！', '？', '\n':
			emit(next)
		case '.', '!', '?':
			for next < len(text) && strings.ContainsRune(`.!?"')`, rune(text[next])) {
				next++
			}
			rest := text[next:]
			if (rest == "" || unicode.IsSpace(firstRune(rest))) && (r != '.' || !abbreviation(text[start:i], rest)) {
				emit(next)
			}
		}
		i = next
	}
	emit(len(text))
	return out
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.So, r)
}

// abbreviation reports whether the full stop between the two texts belongs to an abbreviation, and does not end a
// sentence.
func abbreviation(before, after string) bool {
	word := before[strings.LastIndexFunc(before, unicode.IsSpace)+1:]
	switch strings.ToLower(word) {
	case "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "etc", "no":
		return true
	}
	if utf8.RuneCountInString(word) == 1 && word != "I" && unicode.IsUpper(firstRune(word)) {
		return true
	}
	next := firstRune(strings.TrimLeft(after, " \t"))
	return word != "" && unicode.IsDigit(firstRune(word)) && unicode.IsLower(next)
}

// IsQuestion reports whether a sentence asks.
func IsQuestion(sentence string) bool {
	s := strings.TrimRight(sentence, "\"'”’)» \t\n")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// Read reads one sentence of a speaker by the rules. The second answer is false for a question and for a text without a
// word.
func Read(speaker, sentence string) (Statement, bool) {
	text := strings.TrimSpace(sentence)
	if text == "" || IsQuestion(text) || strings.IndexFunc(text, isWordRune) < 0 {
		return Statement{}, false
	}
	s := Statement{Speaker: speaker, Text: text, Relation: "SAID"}
	plain := strings.TrimRight(text, ".!。！;, \t")
	s.Object = plain
	s.Fact = speaker + ": " + plain
	for _, rule := range readingRules {
		m := rule.pattern.FindStringSubmatch(plain)
		if m == nil {
			continue
		}
		s.Relation, s.Preference, s.Lasting = rule.relation, rule.preference, true
		s.Object = strings.TrimSpace(m[len(m)-1])
		s.Fact = thirdPerson(speaker, plain)
		break
	}
	s.Lasting = s.Lasting || firstPerson.MatchString(plain) && habit.MatchString(plain)
	s.Change = change.MatchString(plain)
	s.Topics = topics(plain)
	return s, true
}

// ReadAll reads every sentence of a text.
func ReadAll(speaker, text string) []Statement {
	var out []Statement
	for _, sentence := range Sentences(text) {
		if s, ok := Read(speaker, sentence); ok {
			out = append(out, s)
		}
	}
	return out
}

// Replaces reports whether the newer statement makes the older one out of date: it says that something changed, and
// both speak of one topic.
func (s Statement) Replaces(older Statement) bool {
	if !s.Change || s.Text == older.Text {
		return false
	}
	for _, a := range s.Topics {
		for _, b := range older.Topics {
			if a == b {
				return true
			}
		}
	}
	return false
}

type readingRule struct {
	relation   string
	preference bool
	pattern    *regexp.Regexp
}

// adverbs may come between "I" and the verb.
const adverbs = `(?:(?:now|always|never|really|still|only|usually|normally|also|just|no longer|do not|don't|don’t|currently|mostly|have|had|would|'ve|'d) )*`

var readingRules = []readingRule{
	rule("IS_CALLED", false, `(?i)\b(?:my|our) ([\p{L}\p{N} '-]+?)(?:'s name is| is called| are called| is named| are named| is known as) (.+)`),
	rule("PREFERS", true, `(?i)\bmy (?:favou?rite|preferred|usual) ([\p{L}\p{N} '-]+?) (?:is|are) (.+)`),
	rule("PREFERS", true, `(?i)\bI (?:'d )?`+adverbs+`(?:prefer|favou?r)s? (.+)`),
	rule("DISLIKES", true, `(?i)\bI `+adverbs+`(?:hate|dislike|avoid|detest|can't stand|cannot stand) (.+)`),
	rule("DISLIKES", true, `(?i)\bI (?:really )?(?:do not|don't|don’t|no longer) (?:like|love|enjoy|want) (.+)`),
	rule("LIKES", true, `(?i)\bI `+adverbs+`(?:like|love|enjoy|adore) (.+)`),
	rule("GAVE_UP", false, `(?i)\bI(?:'ve|’ve| have)? (?:given up|stopped|quit|gave up) (.+)`),
	rule("MOVED_TO", false, `(?i)\b(?:I|we)(?:'ve|’ve| have| just| recently)* moved to (.+)`),
	rule("LIVES_IN", false, `(?i)\b(?:I|we) `+adverbs+`live (?:in |at |near )?(.+)`),
	rule("WORKS", false, `(?i)\bI `+adverbs+`work (?:at |for |as |in )(.+)`),
	rule("DRINKS", true, `(?i)\bI `+adverbs+`drink (.+)`),
	rule("EATS", true, `(?i)\bI `+adverbs+`eat (.+)`),
	rule("IS_ALLERGIC", false, `(?i)\bI(?:'m|’m| am) allergic to (.+)`),
	rule("USES", true, `(?i)\bI `+adverbs+`(?:use|write in|script everything in) (.+)`),
	rule("WANTS", true, `(?i)\bI `+adverbs+`(?:want|would like|need) (.+)`),
	rule("NO_LONGER", false, `(?i)\bI no longer (.+)`),
	rule("IS", false, `(?i)\bmy ([\p{L}\p{N} '-]+?) (?:is|are) (.+)`),
	rule("HAS", false, `(?i)\bI have (.+)`),
	rule("IS", false, `(?i)\bI(?:'m|’m| am) (?:a|an|the|from|in) (.+)`),
	rule("IS_CALLED", false, `我的?(.+?)(?:叫|名叫|名字是)(.+)`),
	rule("DISLIKES", true, `我(?:现在|一直|真的)?(?:讨厌|不喜欢|不爱|不再)(.+)`),
	rule("LIKES", true, `我(?:现在|一直|真的|更|最)?(?:喜欢|爱|偏好)(.+)`),
	rule("LIVES_IN", false, `我(?:现在)?(?:住在|搬到)(.+)`),
	rule("DRINKS", true, `我.*?(?:改喝|喝)(.+)`),
}

func rule(relation string, preference bool, pattern string) readingRule {
	return readingRule{relation: relation, preference: preference, pattern: regexp.MustCompile(pattern)}
}

var (
	firstPerson = regexp.MustCompile(`(?i)\b(?:I|I'm|I’m|I've|my|me|mine|our|we)\b|我`)
	habit       = regexp.MustCompile(`(?i)\b(?:always|never|usually|normally|every|only|from now on|any more|anymore|no longer|since|instead|no )\b|总是|从不|每`)
	change      = regexp.MustCompile(`(?i)\b(?:now|no longer|any ?more|instead|moved to|switched|given up|gave up|from now on|from here on|as of today|replaced|not .+ but)\b|现在|不再|改|搬到`)
)

// thirdPerson says a first-person sentence of its speaker by name: the first "I" or "my", and the verb after it.
func thirdPerson(speaker, text string) string {
	for _, p := range []struct{ from, to string }{{"I'm ", " is "}, {"I’m ", " is "}, {"I am ", " is "},
		{"I've ", " has "}, {"I’ve ", " has "}, {"I have ", " has "}, {"I ", " "}, {"My ", "'s "}, {"我的", "'s "},
		{"我", " "}} {
		if rest, ok := strings.CutPrefix(text, p.from); ok {
			return speaker + p.to + rest
		}
	}
	return speaker + ": " + text
}

// topics are the things that a sentence is about and of which a person has one at a time: a short list of lexical
// fields, and "my X".
func topics(text string) []string {
	var out []string
	lower := strings.ToLower(text)
	words := map[string]bool{}
	for _, t := range Tokens(lower) {
		words[t] = true
	}
	for _, field := range lexicalFields {
		for _, w := range field.words {
			if words[w] {
				out = append(out, field.name)
				break
			}
		}
	}
	if m := possession.FindStringSubmatch(lower); m != nil {
		out = append(out, "my "+strings.TrimSpace(m[1]))
	}
	return out
}

var possession = regexp.MustCompile(`\bmy ([\p{L}\p{N} '-]+?)(?:'s name)? (?:is|are)\b`)

var lexicalFields = []struct {
	name  string
	words []string
}{
	{"seat", stems("seat aisle window 座")},
	{"home", stems("live moved lived 住 搬")},
	{"job", stems("work job employer")},
	{"hot drink", stems("coffee tea espresso latte sencha flat 茶 咖 啡")},
	{"milk", stems("milk oat soy 奶")},
	{"diet", stems("vegetarian vegan meat fish 素 肉")},
	{"editor", stems("vim emacs editor markdown document")},
	{"script", stems("bash python shell script")},
	{"meeting", stems("meeting meetings")},
	{"exercise", stems("running run swimming swim jogging")},
	{"commute", stems("cycle bike tram commute")},
	{"rehearsal", stems("band rehearse rehearses rehearsal")},
	{"report", stems("table tables report summary")},
}

func stems(words string) []string {
	var out []string
	for _, w := range strings.Fields(words) {
		out = append(out, Tokens(w)...)
	}
	return out
}
