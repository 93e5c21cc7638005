package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
)

// This file has what a judge's files have in common: judgements of answers, and grades of conversations.

// Asked describes the request to a judge's model about one text. It is empty if no judge was asked.
type Asked struct {
	Stub          bool   `json:"stub,omitempty"`
	RequestSHA256 string `json:"request_sha256,omitempty"`
	AnswerSHA256  string `json:"answer_sha256,omitempty"`
	// Params are the parameters of the request.
	Params string `json:"params,omitempty"`
	// FinishReason is why the judge's model stopped; Usage is its endpoint's count.
	FinishReason string         `json:"finish_reason,omitempty"`
	Usage        *journal.Usage `json:"usage,omitempty"`
}

// askJudge asks about one text. If the endpoint rejects it or returns an empty answer, the text is missing, not wrong:
// missing says why, and the caller can continue with the next text. err ends the judging.
func askJudge(ctx context.Context, client *Client, l *lab.Lab, rubric, text string, put Put) (answer string, asked Asked,
	missing *abi.Error, err error) {
	reply, err := client.Chat(ctx, []Message{{"system", rubric}, {"user", text}}, l.Seed, put)
	if ctx.Err() != nil {
		return "", asked, nil, context.Cause(ctx)
	}
	if err != nil {
		missing = abi.AsError(err)
		switch missing.Code {
		case abi.CodeUnavailable, abi.CodeRateLimited, abi.CodeUnauthenticated:
			return "", asked, missing, prefixed("judge: ", err)
		}
		return "", asked, missing, nil
	}
	asked = Asked{reply.Stub, reply.RequestSHA256, reply.AnswerSHA256, reply.Params, reply.FinishReason, reply.Usage}
	if missing = reply.missing(); missing != nil {
		missing.Message = "judge: " + missing.Message
	}
	return reply.Text, asked, missing, nil
}

// judgeLine is a line of a judge's file: the header, which comes first, or the result for an item.
type judgeLine interface {
	header() *Header
	key() string // of the item
	failure() *abi.Error
}

// judgeItems adds a line for each item that does not have a line without an error in a judge's file yet. line returns
// the line for an item's number, and ask fills it in. tell reports the progress.
//
// Errors: conflict if the file belongs to another run or judge; those of ask.
func judgeItems[L any, P interface {
	*L
	judgeLine
}](path string, header P, items int, line func(n int) P, ask func(n int) error, tell func(done, total int)) error {
	if err := dropCutOff(path); err != nil {
		return err
	}
	before, err := readLines[L](path)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range before {
		l := P(&before[i])
		if i == 0 && (l.header() == nil || *l.header() != *header.header()) {
			return abi.NewError(abi.CodeConflict, path+" is of another run or judge").WithHint("move it away, and judge again")
		}
		if l.failure() == nil {
			known[l.key()] = true
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	defer f.Close()
	w := json.NewEncoder(f)
	if len(before) == 0 {
		if err := w.Encode(header); err != nil {
			return err
		}
	}
	for n := range items {
		if l := line(n); !known[l.key()] {
			if err := ask(n); err != nil {
				return err
			}
			if err := w.Encode(l); err != nil {
				return abi.WrapError(abi.CodeUnavailable, err.Error(), err)
			}
		}
		tell(n+1, items)
	}
	return nil
}

// dropCutOff removes an unterminated last line, which a killed process left: it is judged again.
func dropCutOff(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(text) > 0 && text[len(text)-1] != '\n' {
		err = os.Truncate(path, int64(bytes.LastIndexByte(text, '\n')+1))
	}
	if err != nil {
		return abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	return nil
}

// readLines reads a file of JSON lines; none if it does not exist.
func readLines[L any](path string) ([]L, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	defer f.Close()
	var list []L
	d := json.NewDecoder(f)
	for {
		var l L
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s, line %d: %v", path, len(list)+1, err))
		}
		list = append(list, l)
	}
}
