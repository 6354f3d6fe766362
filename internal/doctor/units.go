package doctor

import (
	"bytes"
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
	for _, name := range paths {
		info, statErr := os.Stat(name)
		if name == "-" || statErr != nil || !info.IsDir() && !strings.HasSuffix(name, unitSuffix) {
			others = append(others, name)
			continue
		}
		if info.IsDir() {
			others = append(others, name)
		} else {
			units = append(units, name)
		}
		for _, unit := range unitsIn(name) {
			text, err := readUnit(unit)
			if err != nil {
				return nil, nil, err
			}
			r.unit(unit, text)
		}
	}
	return units, others, nil
}

// unitsIn are the units of a folder and its folders, or the file itself. Hidden ones are
// left out, and so are folders that cannot be read, which is reported where their other
// files are.
func unitsIn(root string) []string {
	var units []string
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != root && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return fs.SkipDir
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.Type().IsRegular() && !hidden && strings.HasSuffix(name, unitSuffix), name == root && !entry.IsDir():
			units = append(units, name)
		}
		return nil
	})
	return units
}

func readUnit(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, unitMost+1))
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if len(text) > unitMost {
		return nil, fmt.Errorf("%s is larger than %d bytes, and no unit of systemd", name, unitMost)
	}
	return text, nil
}

// unit adds the API server that a unit starts, if any.
func (r *reader) unit(name string, text []byte) {
	words, line := execStart(text)
	if len(words) == 0 {
		return
	}
	at := finding.Place{File: name, Line: line, Key: "ExecStart"}
	args := arguments(words[1:])
	a := APIServer{Place: at, Name: filepath.Base(name)}
	switch program := path.Base(words[0]); program {
	case "kube-apiserver":
		a.Flags, a.command = args.flags(), args.flags()
	case "k3s", "rke2":
		if len(args) == 0 || args[0] != "server" {
			return
		}
		a.Distribution = map[string]Distribution{"k3s": K3s, "rke2": RKE2}[program]
		flags := args[1:].flags()
		if last(flags, "disable-apiserver") == "true" {
			return
		}
		// Options of the unit replace the list of the config file.
		a.Flags, a.configFile = rancherFlags(flags[rancherFlag]), ""
		if len(flags[rancherFlag]) == 0 {
			a.configFile = last(flags, "config", "c")
			if a.configFile == "" {
				a.configFile = "/etc/rancher/" + program + "/config.yaml"
			}
		}
	default:
		return
	}
	if variable := args.variable(); variable != "" {
		a.Lacking, a.Unseen = resourceAPIServers, fmt.Sprintf(
			"%s has flags in %s, which the unit does not show; write them out", name, variable,
		)
	}
	r.cluster.units = append(r.cluster.units, a)
}

// execStart returns the words of the last command of a service, and its line.
func execStart(text []byte) (words []string, line int) {
	section, number := "", 0
	lines := bytes.Split(text, []byte("\n"))
	for number < len(lines) {
		start := number + 1
		var logical string
		logical, number = continued(lines, number)
		switch {
		case strings.HasPrefix(logical, "["):
			section = logical
			continue
		case section != "[Service]":
			continue
		}
		key, value, found := strings.Cut(logical, "=")
		if !found || strings.TrimSpace(key) != "ExecStart" {
			continue
		}
		words, line = unitWords(strings.TrimSpace(value)), start
	}
	if len(words) > 0 {
		words[0] = strings.TrimLeft(words[0], "@-:+!|")
	}
	return words, line
}

// continued joins the lines that end in a backslash, without comments, and returns the
// number of the next one.
func continued(lines [][]byte, number int) (string, int) {
	var all []string
	for number < len(lines) {
		line := strings.TrimSpace(string(lines[number]))
		number++
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			if len(all) == 0 {
				return "", number
			}
			continue
		}
		more, goesOn := strings.CutSuffix(line, `\`)
		all = append(all, strings.TrimSpace(more))
		if !goesOn {
			break
		}
	}
	return strings.TrimSpace(strings.Join(all, " ")), number
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

// unitServers are the API servers of units. One of k3s or RKE2 that takes its options from
// a config file is that of the file, if it was given.
func (c *Cluster) unitServers() []APIServer {
	var servers []APIServer
	for _, a := range c.units {
		if a.configFile != "" {
			if len(c.rancher) > 0 {
				continue
			}
			a.Lacking, a.Unseen = "config.yaml", fmt.Sprintf("%s also reads %s, which was not given; "+
				"where there is none, the annotation %s of the Node has all options",
				a.Place.File, a.configFile, a.Distribution.annotation())
		}
		servers = append(servers, a)
	}
	return servers
}

// overridden reports whether a unit overrides a config file of k3s or RKE2.
func (c *Cluster) overridden(d Distribution) bool {
	for _, a := range c.units {
		if a.Distribution == d && a.configFile == "" {
			return true
		}
	}
	return false
}
