//go:build !tinygo && !extism

package sdk

func makeRoom() {}
