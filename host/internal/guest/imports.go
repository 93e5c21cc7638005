package guest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Param is a parameter of an import. A text is an address and a length for a module of mh1, and a pointer to a block
// for an Extism module.
type Param int

// The kinds of parameters: a text, or a number of 32 or 64 bits.
const (
	Text Param = iota
	I32
	I64
)

// result is the kind of result of an import.
type result int

const (
	nothing result = iota
	number         // an i64 whose meaning depends on the import
	pulled         // a head and a body: returns an i64 from abi.Pack, then the bytes are pulled
)

// Import is a function of module "memhost". pull is not one of them, because it asks nothing of the host.
type Import struct {
	Name   string
	Params []Param
	result result
	// answer calls Powers.
	answer func(c *Call, a *Ask) Answer
}

// Ask is a host call as it crosses the border of the guest. The texts are in the guest's own memory. StatePut, which
// has two texts and a number, asks {Texts: [key, value], Numbers: [expected version]}.
type Ask struct {
	*Import
	texts   [2][]byte
	numbers [1]int64
}

// Texts returns the arguments that are texts, in the order of the parameters.
func (a *Ask) Texts() [][]byte { return a.texts[:a.count(true)] }

// Numbers returns the arguments that are not texts.
func (a *Ask) Numbers() []int64 { return a.numbers[:a.count(false)] }

func (i *Import) count(texts bool) (n int) {
	for _, p := range i.Params {
		if (p == Text) == texts {
			n++
		}
	}
	return n
}

// Answer is the result of a host call.
type Answer struct {
	// Number is the result of an import that returns a number.
	Number int64
	// Head is JSON, an error object if IsError is set; Body follows it. Both are valid until the next host call.
	Head    []byte
	Body    [][]byte
	IsError bool
}

// AnswersNumber reports whether an import returns a number, AnswersNothing whether it returns nothing. All other
// results are pulled.
func (i *Import) AnswersNumber() bool { return i.result == number }

// AnswersNothing reports whether an import returns nothing.
func (i *Import) AnswersNothing() bool { return i.result == nothing }

// Border receives the host calls of a Call, as bytes. The Call itself is a Border that forwards them to its Powers; a
// tape wraps it.
type Border interface {
	Answer(a *Ask) Answer
}

var _ Border = (*Call)(nil)

// Answer implements Border: it asks Powers.
func (c *Call) Answer(a *Ask) Answer { return a.answer(c, a) }

// Imports lists the host functions in the order of ABI.md, without pull.
func Imports() []*Import { return imports }

var imports = []*Import{
	{abi.ImportConfig, nil, pulled, func(c *Call, _ *Ask) Answer { return Answer{Head: c.Powers.Config()} }},
	{abi.ImportDeadline, nil, number, func(c *Call,
		_ *Ask) Answer {
		return Answer{Number: c.Powers.Left().Milliseconds()}
	}},
	{abi.ImportLog, []Param{I32, Text}, nothing, func(c *Call, a *Ask) Answer {
		c.Powers.Log(int32(a.numbers[0]), a.texts[0])
		return Answer{}
	}},
	{abi.ImportTokensCount, []Param{Text}, number,
		func(c *Call, a *Ask) Answer { return Answer{Number: c.Powers.CountTokens(a.texts[0])} }},
	{abi.ImportTokensFit, []Param{Text, I32}, number, func(c *Call, a *Ask) Answer {
		n, tokens := c.Powers.FitTokens(a.texts[0], a.numbers[0])
		return Answer{Number: tokens<<32 | int64(uint32(n))}
	}},
	{abi.ImportStateGet, []Param{Text}, pulled, func(c *Call, a *Ask) Answer {
		value, version, err := c.Powers.StateGet(c.ctx, string(a.texts[0]))
		if err != nil {
			return c.refuse("", err)
		}
		return c.head(&abi.StateVersion{Version: version}, value)
	}},
	{abi.ImportStatePut, []Param{Text, Text, I64}, pulled, func(c *Call, a *Ask) Answer {
		version, err := c.Powers.StatePut(c.ctx, string(a.texts[0]), a.texts[1], a.numbers[0])
		return c.headOrError(&abi.StateVersion{Version: version}, err)
	}},
	{abi.ImportStateDelete, []Param{Text}, pulled, func(c *Call, a *Ask) Answer {
		deleted, err := c.Powers.StateDelete(c.ctx, string(a.texts[0]))
		return c.headOrError(&abi.StateDeleted{Deleted: deleted}, err)
	}},
	{abi.ImportStateList, []Param{Text}, pulled, func(c *Call, a *Ask) Answer {
		r := new(abi.StateListRequest)
		if err := parse(a.texts[0], r); err != nil {
			return c.refuse("", err)
		}
		head, values, err := c.Powers.StateList(c.ctx, r)
		if err != nil {
			return c.refuse("", err)
		}
		return c.head(head, values...)
	}},
	{abi.ImportStateAppend, []Param{Text, Text}, pulled, func(c *Call, a *Ask) Answer {
		seq, err := c.Powers.StateAppend(c.ctx, string(a.texts[0]), a.texts[1])
		return c.headOrError(&abi.StateSeq{Seq: seq}, err)
	}},
	{abi.ImportStateRead, []Param{Text}, pulled, func(c *Call, a *Ask) Answer {
		r := new(abi.StateReadRequest)
		if err := parse(a.texts[0], r); err != nil {
			return c.refuse("", err)
		}
		head, entries, err := c.Powers.StateRead(c.ctx, r)
		if err != nil {
			return c.refuse("", err)
		}
		return c.head(head, entries...)
	}},
	{abi.ImportHTTPSend, []Param{Text, Text}, pulled, func(c *Call, a *Ask) Answer {
		r := new(abi.HTTPRequest)
		if err := parse(a.texts[0], r); err != nil {
			return c.refuse("", err)
		}
		head, body, err := c.Powers.HTTP(c.ctx, r, bytes.Clone(a.texts[1]))
		if err != nil {
			return c.refuse(r.Route, err)
		}
		return c.head(head, body)
	}},
	{abi.ImportBoltRun, []Param{Text}, pulled, func(c *Call, a *Ask) Answer {
		r := new(abi.BoltRequest)
		if err := parse(a.texts[0], r); err != nil {
			return c.refuse("", err)
		}
		head, rows, err := c.Powers.Bolt(c.ctx, r)
		if err != nil {
			return c.refuse(r.Route, err)
		}
		return c.head(head, rows)
	}},
}

// parse decodes what the guest asks for. v refers to a copy, because the guest's bytes change. It ignores unknown
// fields, which come from later versions.
func parse(text []byte, v abi.Decodable) error {
	if at := InvalidUTF8(text); at >= 0 {
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("invalid UTF-8 at byte %d", at))
	}
	return abi.UnmarshalOwned(bytes.Clone(text), v)
}

// head is an answer with head and body.
func (c *Call) head(head abi.Encodable, body ...[]byte) Answer {
	c.headBuffer = abi.AppendJSON(c.headBuffer[:0], head)
	return Answer{Head: c.headBuffer, Body: body}
}

func (c *Call) headOrError(head abi.Encodable, err error) Answer {
	if err != nil {
		return c.refuse("", err)
	}
	return c.head(head)
}

// refuse is the answer of a failed host call; route is the route that it was for.
func (c *Call) refuse(route string, err error) Answer {
	e := *abi.AsError(err)
	e.Operation = c.Op
	if route != "" {
		e.Route = route
	}
	return Answer{Head: abi.Marshal(c.plugin.Redact(&e)), IsError: true}
}

// Do makes a host call and returns the result for the guest's stack. If the answer is to be pulled, it is kept until
// then.
func (c *Call) Do(i *Import, texts [2][]byte, numbers [1]int64) uint64 {
	c.shareThread()
	c.ask = Ask{i, texts, numbers}
	answer := c.Border.Answer(&c.ask)
	if i.result != pulled {
		return uint64(answer.Number)
	}
	c.pending = append(c.pending[:0], answer.Head)
	total := 0
	for _, b := range answer.Body {
		if len(b) > 0 {
			c.pending = append(c.pending, b)
			total += len(b)
		}
	}
	return abi.Pack(uint32(total), uint32(len(answer.Head)), answer.IsError)
}

// Pending is how many bytes are left to pull.
func (c *Call) Pending() (n int) {
	for _, part := range c.pending {
		n += len(part)
	}
	return n
}

// Pull copies as many pending bytes as fit into dst, and returns their number.
func (c *Call) Pull(dst []byte) (n int) {
	c.shareThread()
	for len(dst) > n && len(c.pending) > 0 {
		k := copy(dst[n:], c.pending[0])
		n += k
		if c.pending[0] = c.pending[0][k:]; len(c.pending[0]) == 0 {
			c.pending = c.pending[1:]
		}
	}
	return n
}

// Type is the wasm type of the import, for a module in which a text has the given types.
func (i *Import) Type(text ...wasmbin.ValueType) wasmbin.FuncType {
	t := wasmbin.FuncType{}
	for _, p := range i.Params {
		switch p {
		case Text:
			t.Params = append(t.Params, text...)
		case I32:
			t.Params = append(t.Params, wasmbin.I32)
		case I64:
			t.Params = append(t.Params, wasmbin.I64)
		}
	}
	if i.result != nothing {
		t.Results = []wasmbin.ValueType{wasmbin.I64}
	}
	return t
}

// call makes the import's host call for an mh1 module.
func (i *Import) call(ctx context.Context, module api.Module, stack []uint64) {
	c := CallOf(ctx)
	c.Memory = module.Memory()
	var texts [2][]byte
	var numbers [1]int64
	at, text := 0, 0
	for _, p := range i.Params {
		switch p {
		case Text:
			texts[text] = c.view(stack[at], stack[at+1])
			at, text = at+2, text+1
		case I32:
			numbers[0] = int64(int32(stack[at]))
			at++
		case I64:
			numbers[0] = int64(stack[at])
			at++
		}
	}
	if r := c.Do(i, texts, numbers); i.result != nothing {
		stack[0] = r
	}
}

var (
	typePull = wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I32},
		Results: []wasmbin.ValueType{wasmbin.I32}}
	textMH1 = []wasmbin.ValueType{wasmbin.I32, wasmbin.I32}
)

// importTypes are the types of all imports of module "memhost", by name.
func importTypes() map[string]wasmbin.FuncType {
	types := map[string]wasmbin.FuncType{abi.ImportPull: typePull}
	for _, i := range imports {
		types[i.Name] = i.Type(textMH1...)
	}
	return types
}

// instantiateImports makes the imports available to all guests of a runtime. They are stack-based, so that a call needs
// no reflection and no allocation.
func instantiateImports(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(abi.HostModule)
	export := func(name string, t wasmbin.FuncType, run api.GoModuleFunc) {
		b.NewFunctionBuilder().WithName(name).WithGoModuleFunction(run, ValueTypes(t.Params),
			ValueTypes(t.Results)).Export(name)
	}
	export(abi.ImportPull, typePull, func(ctx context.Context, module api.Module, stack []uint64) {
		c := CallOf(ctx)
		c.Memory = module.Memory()
		stack[0] = uint64(c.Pull(c.view(stack[0], stack[1])))
	})
	for _, i := range imports {
		export(i.Name, i.Type(textMH1...), i.call)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// ValueTypes converts wasmbin's types to wazero's.
func ValueTypes(types []wasmbin.ValueType) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = api.ValueType(t)
	}
	return list
}
