// Command vocabulary writes the vocabularies that package tokens embeds, from those of
// github.com/tiktoken-go/tokenizer: the tokens' lengths in the order of their ranks, a byte each, then the tokens;
// compressed by the command `zstd` at its highest level, which leaves 7 % less than Go's encoder does. Its test holds
// the files, and the counts of package tokens, against that library's.
//
//	go run ./vocabulary ../internal/text/tokens
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tiktoken-go/tokenizer/codec"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vocabulary:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want the folder to write to")
	}
	for _, c := range []*codec.Codec{codec.NewCl100kBase(), codec.NewO200kBase()} {
		zstd := exec.Command("zstd", "--ultra", "-22", "--force", "-o", filepath.Join(args[0], c.GetName()+".zst"))
		zstd.Stdin, zstd.Stderr = bytes.NewReader(vocabulary(c)), os.Stderr
		if err := zstd.Run(); err != nil {
			return fmt.Errorf("zstd, of the package zstd: %w", err)
		}
	}
	return nil
}

// vocabulary returns what package tokens reads, not yet compressed.
func vocabulary(c *codec.Codec) []byte {
	var lengths, tokens []byte
	for id := uint(0); ; id++ {
		token, err := c.Decode([]uint{id})
		if err != nil { // the last one has been added
			return append(lengths, tokens...)
		}
		lengths, tokens = append(lengths, byte(len(token))), append(tokens, token...)
	}
}
