// Command vocabulary writes the vocabularies that package tokens embeds, from those of
// github.com/tiktoken-go/tokenizer: every token in the order of its rank, one byte of length before each, compressed
// with Zstandard. Its test holds the counts of package tokens against that library's.
//
//	go run ./vocabulary ../internal/text/tokens
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
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
		text, err := compressed(c)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[0], c.GetName()+".zst"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compressed(c *codec.Codec) ([]byte, error) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return nil, err
	}
	for id := uint(0); ; id++ {
		token, err := c.Decode([]uint{id})
		if err != nil { // the last one has been written
			err = w.Close()
			return b.Bytes(), err
		}
		if _, err := w.Write(append([]byte{byte(len(token))}, token...)); err != nil {
			return nil, err
		}
	}
}
