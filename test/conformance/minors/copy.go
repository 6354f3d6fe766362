//go:build ignore

// The program copies the part that all oracles share into each of them.
package main

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
)

func main() {
	text, err := os.ReadFile("oracle.go.txt")
	if err != nil {
		log.Fatal(err)
	}
	modules, err := filepath.Glob("v1.*")
	if err != nil {
		log.Fatal(err)
	}
	header := []byte("// Code generated from ../oracle.go.txt by go generate. DO NOT EDIT.\n\n")
	for _, module := range modules {
		if err := os.WriteFile(filepath.Join(module, "oracle.go"), bytes.Join([][]byte{header, text}, nil), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
