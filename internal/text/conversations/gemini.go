package conversations

import (
	"encoding/json"
	"html"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html/atom"

	nethtml "golang.org/x/net/html"

	"github.com/memhost/memhost/abi"
)

// geminiActivity is an element of the list that Google Takeout exports for "Gemini Apps" in "My Activity": one question
// of a person, with the answer as HTML. It has no ids, and does not say which conversation it belongs to.
type geminiActivity struct {
	Header   string          `json:"header"`
	Title    string          `json:"title"`
	Time     json.RawMessage `json:"time"`
	Products []string        `json:"products"`
	Answers  []struct {
		HTML string `json:"html"`
	} `json:"safeHtmlItem"`
	Subtitles []struct {
		Name string `json:"name"`
	} `json:"subtitles"`
	Files []struct {
		Name string `json:"name"`
	} `json:"attachedFiles"`
	ImageFile string `json:"imageFile"`
}

// newGeminiList reads activities in order of time, or a conversation of AI Studio.
func newGeminiList(in io.Reader, name string, zone *time.Location) *list {
	l := newList(in, func(raw json.RawMessage) (*conversation, error) {
		var keys map[string]json.RawMessage
		_ = json.Unmarshal(raw, &keys)
		if keys["title"] != nil && keys["chunkedPrompt"] == nil || keys["header"] != nil {
			return geminiConversation(raw, zone)
		}
		return studioConversation(raw, name, zone)
	})
	l.byTime = func(raw json.RawMessage) time.Time {
		var of struct {
			Time json.RawMessage `json:"time"`
		}
		_ = json.Unmarshal(raw, &of)
		at, _ := readTime(of.Time, time.UTC)
		return at
	}
	return l
}

// asked matches what precedes a person's words in a title.
var asked = regexp.MustCompile(`^(?:Prompted|Asked|Said|Answered|Branched|Sent|Dictated)(?: with| Gemini| Bard)?(?::\s*|\s+)`)

// attachedFiles matches the end of a title.
var attachedFiles = regexp.MustCompile(`\s*Attached (\d+) files?\.\s*$`)

// geminiConversation reads an activity as its own conversation. Activities of other products, and those that are not
// prompts, such as feedback, are counted.
func geminiConversation(raw json.RawMessage, zone *time.Location) (*conversation, error) {
	var a geminiActivity
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, invalid("is no activity of Gemini: %s", err)
	}
	if a.Title == "" && a.Header == "" {
		return nil, invalid("title: want what was asked, found none: not \"My Activity\" of Google Takeout, or one of another " +
			"version")
	}
	t := newConversation(zone)
	at := t.timeOf(a.Time, "time")
	t.session = "activity"
	if !at.IsZero() {
		t.session = at.Format(time.DateOnly)
	}
	of := strings.ToLower(strings.Join(append(slices.Clone(a.Products), a.Header), " "))
	if !strings.Contains(of, "gemini") && !strings.Contains(of, "bard") {
		t.counts.ProgramEntries++
		return t, nil
	}
	words := asked.ReplaceAllString(a.Title, "")
	if words == a.Title && len(a.Answers) == 0 {
		t.counts.ProgramEntries++ // "Used an assistant feature", "Gave feedback"
		return t, nil
	}
	files := 0
	if m := attachedFiles.FindStringSubmatch(words); m != nil {
		words = strings.TrimSuffix(words, m[0])
		files, _ = strconv.Atoi(m[1])
	}
	for _, f := range a.Files {
		words, files = words+"\n"+t.attached(f.Name, "file"), files-1
	}
	if a.ImageFile != "" && len(a.Files) == 0 {
		words, files = words+"\n"+t.attached(path.Base(a.ImageFile), "image"), files-1
	}
	for ; files > 0; files-- {
		words += "\n" + t.attached("", "file")
	}
	t.say(abi.RoleUser, words, at, string(a.Time)+"\x00"+a.Title)
	for _, answer := range a.Answers {
		t.say(abi.RoleAssistant, textOfHTML(answer.HTML), at, "")
	}
	return t, nil
}

// textOfHTML extracts the text of an answer: one line for each paragraph, list item, row and so on.
func textOfHTML(source string) string {
	var b strings.Builder
	for z := nethtml.NewTokenizer(strings.NewReader(source)); ; {
		switch z.Next() {
		case nethtml.ErrorToken:
			lines := strings.Split(b.String(), "\n")
			for i := range lines {
				lines[i] = strings.TrimRight(lines[i], " \t")
			}
			return blankLines.ReplaceAllString(strings.TrimSpace(strings.Join(lines, "\n")), "\n\n")
		case nethtml.TextToken:
			b.WriteString(html.UnescapeString(string(z.Raw())))
		case nethtml.StartTagToken, nethtml.EndTagToken, nethtml.SelfClosingTagToken:
			name, _ := z.TagName()
			switch atom.Lookup(name) {
			case atom.P, atom.Br, atom.Div, atom.Li, atom.Tr, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre,
				atom.Ul, atom.Ol, atom.Table, atom.Blockquote, atom.Hr:
				b.WriteString("\n")
			case atom.Td, atom.Th:
				b.WriteString(" ")
			}
		}
	}
}

var blankLines = regexp.MustCompile(`\n{3,}`)

// studioPrompt is a Google AI Studio conversation, as saved in Google Drive.
type studioPrompt struct {
	ID            string          `json:"id"`
	CreateTime    json.RawMessage `json:"createTime"`
	ChunkedPrompt *struct {
		Chunks  []json.RawMessage `json:"chunks"`
		Pending []json.RawMessage `json:"pendingInputs"`
	} `json:"chunkedPrompt"`
	System json.RawMessage `json:"systemInstruction"`
}

type studioChunk struct {
	Role       string          `json:"role"`
	Text       string          `json:"text"`
	Thought    bool            `json:"isThought"`
	CreateTime json.RawMessage `json:"createTime"`
	Parts      []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
	} `json:"parts"`
}

// studioFiles are the fields of a chunk that describe a file. Its other fields are not part of the conversation.
var studioFiles = map[string]string{"driveDocument": "file", "driveImage": "image", "driveVideo": "video",
	"driveAudio": "sound", "inlineImage": "image", "inlineFile": "file", "inlineData": "file", "inlineAudio": "sound",
	"youtubeVideo": "video", "fileData": "file"}

// studioTools are the fields of chunks that belong to tools.
var studioTools = map[string]bool{"executableCode": true, "functionCall": true, "codeExecutionResult": false,
	"functionResponse": false}

// studioConversation reads an AI Studio conversation. name is its file's name, because the conversation has no id.
func studioConversation(raw json.RawMessage, name string, zone *time.Location) (*conversation, error) {
	var p studioPrompt
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, invalid("is no conversation of AI Studio: %s", err)
	}
	if p.ChunkedPrompt == nil {
		return nil, invalid("chunkedPrompt: missing: want a conversation of AI Studio, or the list of activities of Google " +
			"Takeout's \"My Activity\" as JSON")
	}
	t := newConversation(zone)
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	t.session = p.ID
	if t.session == "" {
		t.session = strings.TrimSuffix(name, path.Ext(name))
	}
	at := t.timeOf(p.CreateTime, "createTime")
	if text := string(p.System); strings.Contains(text, `"text"`) {
		t.counts.Instructions++
	}
	for i, raw := range p.ChunkedPrompt.Chunks {
		var c studioChunk
		var keys map[string]json.RawMessage
		place := "chunkedPrompt.chunks[" + strconv.Itoa(i) + "]"
		if err := json.Unmarshal(raw, &c); err != nil || json.Unmarshal(raw, &keys) != nil {
			return nil, invalid("%s: %s", place, err)
		}
		at = orElse(t.timeOf(c.CreateTime, place+".createTime"), at)
		t.addStudio(&c, keys, at, t.session+"\x00"+strconv.Itoa(i))
	}
	t.counts.Unfinished += len(p.ChunkedPrompt.Pending)
	return t, nil
}

func (t *conversation) addStudio(c *studioChunk, keys map[string]json.RawMessage, at time.Time, id string) {
	words := c.Text
	if words == "" {
		for _, part := range c.Parts {
			if part.Thought {
				t.counts.Thoughts++
			} else {
				words += part.Text
			}
		}
	}
	for key, kind := range studioFiles {
		if keys[key] != nil {
			var of struct{ Name, Title string }
			_ = json.Unmarshal(keys[key], &of)
			words += "\n" + t.attached(of.Name+of.Title, kind)
		}
	}
	for key, isCall := range studioTools {
		switch {
		case keys[key] == nil:
		case isCall:
			t.counts.ToolCalls++
		default:
			t.counts.ToolOutputs++
		}
	}
	switch {
	case c.Thought:
		t.counts.Thoughts++
	case c.Role == "user":
		t.say(abi.RoleUser, words, at, id)
	case c.Role == "model" || c.Role == "assistant":
		t.say(abi.RoleAssistant, words, at, id)
	case strings.TrimSpace(words) != "":
		t.counts.Unknown["role "+orWithout(c.Role)]++
	}
}
