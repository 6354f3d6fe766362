package doctor

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
)

// Units of systemd start k3s, RKE2 and kube-apiserver, with their flags in ExecStart.
// Source: https://www.freedesktop.org/software/systemd/man/latest/systemd.syntax.html
const (
	unitSuffix = ".service"
	unitMost   = 1 << 20 // bytes
)

// readUnits reads the units among the paths and in folders, and returns the units that are
// given as files and the other paths.
func (r *reader) readUnits(paths []string) (units, others []string, err error) {
	for _, root := range paths {
		info, statErr := os.Stat(root)
		if root == "-" || statErr != nil || !info.IsDir() && !strings.HasSuffix(root, unitSuffix) {
			others = append(others, root)
			continue
		}
		if info.IsDir() {
			others = append(others, root)
		} else {
			units = append(units, root)
		}
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			hidden := name != root && strings.HasPrefix(entry.Name(), ".")
			switch {
			case err != nil, entry.IsDir() && hidden: // an error is reported where the other files of the folder are read
				return fs.SkipDir
			case entry.IsDir() || hidden || name != root && !(entry.Type().IsRegular() && strings.HasSuffix(name, unitSuffix)):
				return nil
			}
			return r.readUnit(name)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return units, others, nil
}

// readUnit adds the API server that a unit starts, if any.
func (r *reader) readUnit(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, unitMost+1))
	switch {
	case err != nil:
		return fmt.Errorf("read input: %w", err)
	case len(text) > unitMost:
		return fmt.Errorf("%s is larger than %d bytes, and no unit of systemd", name, unitMost)
	}
	words, line := execStart(string(text))
	if len(words) == 0 {
		return nil
	}
	program := path.Base(words[0])
	a := serverOf(program, words[1:], name, "the unit", finding.Place{File: name, Line: line, Key: "ExecStart"})
	if a == nil {
		return nil
	}
	a.Name = filepath.Base(name)
	switch {
	case a.Distribution == "":
	case a.options: // options of the unit replace the list of the config file
		a.configFile = ""
	case a.configFile == "":
		a.configFile = a.Distribution.folder() + "/config.yaml"
	}
	r.cluster.units = append(r.cluster.units, *a)
	return nil
}

// execStart returns the words of the last command of a service, and its line. A line that ends in a backslash
// continues on the next one, and comments are left out, also between these.
func execStart(text string) (words []string, line int) {
	section, logical, first := "", "", 0
	for i, physical := range strings.Split(text+"\n", "\n") {
		physical = strings.TrimSpace(physical)
		if strings.HasPrefix(physical, "#") || strings.HasPrefix(physical, ";") {
			continue
		}
		if logical == "" {
			first = i + 1
		}
		more, goesOn := strings.CutSuffix(physical, `\`)
		logical += strings.TrimSpace(more) + " "
		if goesOn {
			continue
		}
		whole := strings.TrimSpace(logical)
		logical = ""
		if strings.HasPrefix(whole, "[") {
			section = whole
		}
		if key, value, found := strings.Cut(whole, "="); found && section == "[Service]" && strings.TrimSpace(key) == "ExecStart" {
			words, line = unitWords(strings.TrimSpace(value)), first
		}
	}
	if len(words) > 0 {
		words[0] = strings.TrimLeft(words[0], "@-:+!|")
	}
	return words, line
}

// unitWords splits a command at spaces that are not in quotes.
func unitWords(command string) []string {
	var words []string
	var word strings.Builder
	quoted, begun := rune(0), false
	for _, c := range command {
		switch {
		case quoted == 0 && (c == '"' || c == '\''):
			quoted, begun = c, true
		case quoted != 0 && c == quoted:
			quoted = 0
		case quoted == 0 && (c == ' ' || c == '\t'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
