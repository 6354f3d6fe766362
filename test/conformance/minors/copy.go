//go:build ignore

// The program copies the files that all oracles share into each of them.
package main

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
)

func main() {
	modules, err := filepath.Glob("v1.*")
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range []string{"oracle.go", "restriction.go"} {
		text, err := os.ReadFile(file + ".txt")
		if err != nil {
			log.Fatal(err)
		}
		header := []byte("// Code generated from ../" + file + ".txt by go generate. DO NOT EDIT.\n\n")
		for _, module := range modules {
			if err := os.WriteFile(filepath.Join(module, file), bytes.Join([][]byte{header, text}, nil), 0o644); err != nil {
				log.Fatal(err)
			}
		}
	}
}
