package doctor

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

const apiServerProgram = "kube-apiserver"

// arguments are the command line of a program.
type arguments []string

// argumentsOf returns the arguments of a program that a container, or its shell, starts.
func argumentsOf(c *corev1.Container, program string) (arguments, bool) {
	words := slices.Concat(c.Command, c.Args)
	if len(words) == 0 {
		return nil, false
	}
	if shell := path.Base(words[0]); shell == "sh" || shell == "bash" || shell == "ash" {
		words = strings.Fields(strings.NewReplacer(`"`, " ", "'", " ", "\\\n", " ").Replace(strings.Join(words, " ")))
	}
	// A script may name files and folders of the program before it starts it.
	for i, word := range slices.Backward(words) {
		if path.Base(word) == program {
			return words[i+1:], true
		}
	}
	// An image that starts the program by itself is called after it, and only its
	// arguments are given.
	if len(c.Command) == 0 && strings.HasPrefix(path.Base(c.Image), program) {
		return c.Args, true
	}
	return nil, false
}

// flags returns the values of each flag, by its name without dashes. A flag without a value has "true".
func (a arguments) flags() flagValues {
	flags := flagValues{}
	for i, word := range a {
		name, dashed := strings.CutPrefix(word, "-")
		if !dashed {
			continue
		}
		name = strings.TrimPrefix(name, "-")
		name, value, given := strings.Cut(name, "=")
		if !given {
			if value = "true"; i+1 < len(a) && !strings.HasPrefix(a[i+1], "-") {
				value = a[i+1]
			}
		}
		flags[name] = append(flags[name], value)
	}
	return flags
}

// variable returns a shell variable that contains further flags; empty if there is none. A variable
// as the value of a flag hides no other flag.
func (a arguments) variable() string {
	for i, word := range a {
		value := i > 0 && strings.HasPrefix(a[i-1], "-") && !strings.Contains(a[i-1], "=")
		if !value && (strings.HasPrefix(word, "$") || strings.HasPrefix(word, "`")) {
			return word
		}
	}
	return ""
}

// flagValues are the values of flags, in order, by their names without dashes.
type flagValues map[string][]string

// list returns the entries of all occurrences of a list flag.
func (f flagValues) list(flag string) []string {
	var entries []string
	for entry := range strings.SplitSeq(strings.Join(f[flag], ","), ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// last returns the effective value of a flag under any of its names.
func (f flagValues) last(names ...string) string {
	for _, name := range names {
		if values := f[name]; len(values) > 0 {
			return values[len(values)-1]
		}
	}
	return ""
}

// has reports whether a flag is set.
func (f flagValues) has(flag string) bool { return len(f[flag]) > 0 }

// serverOf returns the API server that a program starts; nil if it starts none. It names the place of the arguments,
// for flags that are not in them.
func serverOf(program string, args arguments, name, where string, at finding.Place) *APIServer {
	flags := args.flags()
	a := &APIServer{Place: at, Name: name, Flags: flags}
	switch program {
	case apiServerProgram:
	case K3s.program(), RKE2.program():
		if len(args) == 0 || args[0] != "server" || flags.last("disable-apiserver") == "true" {
			return nil
		}
		if a.Distribution = K3s; program == RKE2.program() {
			a.Distribution = RKE2
		}
		a.Flags, a.options, a.configFile = rancherFlags(flags[rancherFlag]), len(flags[rancherFlag]) > 0, flags.last("config", "c")
	default:
		return nil
	}
	if variable := args.variable(); variable != "" {
		a.Lacking, a.Unseen = resourceAPIServers, fmt.Sprintf(
			"%s has flags in %s, which %s does not show; write them out", name, variable, where,
		)
	}
	return a
}

// addContainers adds the API servers and authenticators that a pod's containers run.
func (c *Cluster) addContainers(meta *metav1.ObjectMeta, pod *corev1.PodSpec, place placer, spec ...string) {
	for i := range pod.Containers {
		container := &pod.Containers[i]
		at := place(append(slices.Clone(spec), "containers", fmt.Sprint(i))...)
		for _, program := range []string{apiServerProgram, K3s.program(), RKE2.program()} {
			args, ok := argumentsOf(container, program)
			if !ok {
				continue
			}
			if a := serverOf(program, args, meta.Name, "its manifest", at); a != nil {
				a.Revision = meta.Labels["revision"]
				a.withMounted(container)
				c.pods = append(c.pods, *a)
			}
		}
		if args, ok := argumentsOf(container, IAMAuthenticator); ok && slices.Contains(args, "server") {
			flags := args.flags()
			c.addAuthenticator(Authenticator{
				Place: at, Kind: IAMAuthenticator,
				ClusterID: flags.last("cluster-id", "i"), Partition: flags.last("partition"),
			})
		}
	}
}

// withMounted adds that a container of k3s or RKE2 also reads a config file.
func (a *APIServer) withMounted(container *corev1.Container) {
	if a.Distribution == "" {
		return
	}
	folder := a.Distribution.folder()
	if a.configFile == "" && slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == folder || strings.HasPrefix(m.MountPath, folder+"/config.yaml")
	}) {
		a.configFile = folder + "/config.yaml"
	}
	if a.configFile != "" {
		a.Lacking, a.Unseen = "config.yaml", fmt.Sprintf(
			"%s also reads %s; the annotation %s of its Node has all options", a.Name, a.configFile, a.Distribution.annotation(),
		)
	}
}

// addAuthenticator adds an authenticator, unless none of its settings is known.
func (c *Cluster) addAuthenticator(a Authenticator) {
	if a.ClusterID != "" || a.Partition != "" || a.Kind == NodeAuthorizer {
		c.Authenticators = append(c.Authenticators, a)
	}
}

// Units of systemd start k3s, RKE2 and kube-apiserver, with their flags in ExecStart.
// Source: https://www.freedesktop.org/software/systemd/man/latest/systemd.syntax.html
const (
	unitSuffix = ".service"
	unitMost   = 1 << 20 // bytes
)

func (r *reader) readUnits(paths []string) (units, otherPaths []string, err error) {
	for _, root := range paths {
		info, statErr := os.Stat(root)
		if root == "-" || statErr != nil || !info.IsDir() && !strings.HasSuffix(root, unitSuffix) {
			otherPaths = append(otherPaths, root)
			continue
		}
		if info.IsDir() {
			otherPaths = append(otherPaths, root)
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
	return units, otherPaths, nil
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
