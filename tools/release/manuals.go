package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// manualFolder is the folder of manual pages in archives; the packages have its parts under /usr/share.
const manualFolder = "man/man1/"

// writeManuals writes the manual pages of all commands. Hidden ones have none.
func (r *release) writeManuals(dir string) error {
	folder := filepath.Join(dir, "man1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root := cli.Root()
	root.DisableAutoGenTag = true
	asMarkdown(root)
	date := r.time.UTC()
	header := doc.GenManHeader{Section: "1", Date: &date, Source: "node-authorizer " + r.version, Manual: "User Commands"}
	if err := doc.GenManTree(root, &header, folder); err != nil {
		return err
	}
	files, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		r.manuals = append(r.manuals, entry{manualFolder + f.Name(), 0o644, content})
	}
	return r.compressManuals(filepath.Join(dir, "packaged"))
}

// asMarkdown changes the texts of a command and those below it, because the generator of pages reads Markdown.
func asMarkdown(cmd *cobra.Command) {
	escape := strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`").Replace
	var lines []string
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		if strings.HasPrefix(line, "  ") {
			line = "  " + line
		} else {
			line = escape(line)
		}
		lines = append(lines, line)
	}
	cmd.Long = strings.Join(lines, "\n")
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = escape(f.Usage) })
	for _, c := range cmd.Commands() {
		asMarkdown(c)
	}
}

// compressManuals writes the pages as packages have them.
func (r *release) compressManuals(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, m := range r.manuals {
		var b bytes.Buffer
		compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := compressed.Write(m.content); err != nil {
			return err
		}
		if err := compressed.Close(); err != nil {
			return err
		}
		path := filepath.Join(folder, strings.TrimPrefix(m.name, manualFolder)+".gz")
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
		r.packagedManuals = append(r.packagedManuals, path)
	}
	return nil
}
