//go:build !tinygo

package sdk

func makeRoom() {}
