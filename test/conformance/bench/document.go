package main

import (
	"fmt"
	"os"
	"strings"
)

const introduction = `# Benchmarks

<!-- Written by "make bench"; do not edit. -->

node-authorizer and the Node authorizer of Kubernetes are measured side by side in one
process, alternately, through the same interface. A ratio says how many times faster
node-authorizer is: the median of the rounds, with the lowest and the highest. Ratios
count; absolute figures come from one machine and are for orientation.

Run it again with ` + "`make bench`" + `, or one section with
` + "`cd test/conformance && go run ./bench -section worst`" + `.

Machine: %s

## All targets

`

// writeDocument writes all sections, under a summary of their targets.
func writeDocument(file string, sections []section) error {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, machine())
	var all []target
	for _, s := range sections {
		all = append(all, s.targets...)
	}
	writeTargets(&b, all)
	for _, s := range sections {
		b.WriteByte('\n')
		if err := s.write(&b); err != nil {
			return err
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
