package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Remedy adds a remedy as a shell script that applies it: manifests for kubectl apply, commands
// for changes of fields and deletions, and comments for everything else. Names come from a
// cluster or from a request and may be hostile, so they are quoted; what cannot be quoted
// exactly is only a comment. Request renders changes of the request; if it is nil, they are
// comments.
func (p *Page) Remedy(r verdict.Remedy, request func(*Page, []verdict.Change)) {
	if r.Disrupts != "" {
		p.Comment("%s", r.Disrupts)
	}
	if r.Warning != "" {
		p.Comment("warning: %s", r.Warning)
	}
	if len(r.Changes) == 0 {
		p.Comment("nothing to change: %s", r.None)
		return
	}
	if request == nil {
		request = (*Page).byHand
	}
	for _, same := range sameTarget(r.Changes) {
		switch first := same[0]; {
		case first.Of == verdict.OfRequest:
			request(p, same)
		case first.Of == verdict.OfFeatureGate:
			p.gate(first)
		case !Exact(first.APIVersion, first.Object.Kind, first.Object.Namespace, first.Object.Name):
			p.byHand(same)
		case first.Path != "":
			p.Script("kubectl patch %s --type=json -p %s", kubectlTarget(first), JSONPatch(same))
		case first.Op == verdict.Remove:
			p.Script("kubectl delete %s", kubectlTarget(first))
		default:
			p.manifest(first)
		}
	}
}

// RemedyAsComment adds a remedy as a script that does nothing until the # before its commands is taken away.
func (p *Page) RemedyAsComment(r verdict.Remedy) {
	var script Page
	script.Remedy(r, nil)
	for line := range strings.Lines(string(script.encode(false))) {
		if !strings.HasPrefix(line, "#") {
			line = "# " + line
		}
		p.Script("%s", strings.TrimSuffix(line, "\n"))
	}
}

// Runs reports whether the script of a remedy makes all of its changes.
func Runs(r verdict.Remedy) bool {
	return !slices.ContainsFunc(r.Changes, func(c verdict.Change) bool {
		return c.Of != verdict.OfObject || !Exact(c.APIVersion, c.Object.Kind, c.Object.Namespace, c.Object.Name)
	})
}

// Comment adds a line that a shell ignores.
func (p *Page) Comment(format string, args ...any) {
	p.Script("# %s", fmt.Sprintf(format, args...))
}

// sameTarget splits changes into groups that one command makes: of fields of one object, or of
// the request. The order of changes stays.
func sameTarget(all []verdict.Change) [][]verdict.Change {
	var groups [][]verdict.Change
	for i, c := range all {
		if i > 0 && joins(all[i-1], c) {
			last := len(groups) - 1
			groups[last] = append(groups[last], c)
			continue
		}
		groups = append(groups, []verdict.Change{c})
	}
	return groups
}

func joins(a, b verdict.Change) bool {
	if a.Of == verdict.OfRequest && b.Of == verdict.OfRequest {
		return true
	}
	return a.Of == verdict.OfObject && b.Of == verdict.OfObject && a.APIVersion == b.APIVersion && a.Object == b.Object &&
		a.Path != "" && b.Path != ""
}

func (p *Page) gate(c verdict.Change) {
	value := "true"
	if string(c.Value) == "false" {
		value = "false"
	}
	p.Comment("add to the flags of each kube-apiserver:")
	p.Comment("--feature-gates=%s=%s", c.Object.Name, value)
}

// manifest adds the command that creates an object. A Binding can only be created, and not be
// applied, because it is not stored.
func (p *Page) manifest(c verdict.Change) {
	verb := "apply"
	switch {
	case c.Op == verdict.Replace:
		verb = "replace"
	case c.Object.Kind == "Binding":
		verb = "create"
	}
	text, err := yaml.JSONToYAML(c.Value)
	if err != nil || !Exact(strings.Split(string(text), "\n")...) {
		text = []byte(oneLine(c.Value))
	}
	p.Comment("%s", c.Object)
	p.Script("kubectl %s -f - <<'EOF'", verb)
	for line := range strings.Lines(strings.TrimSuffix(string(text), "\n") + "\n") {
		p.Script("%s", strings.TrimSuffix(line, "\n"))
	}
	p.Script("EOF")
}

// byHand adds changes that no command can make as comments.
func (p *Page) byHand(same []verdict.Change) {
	for _, c := range same {
		text, err := json.Marshal(c)
		if err != nil {
			text = []byte(`"a change that cannot be encoded"`)
		}
		p.Comment("change by hand: %s", oneLine(text))
	}
}

// kubectlTarget returns an object as arguments of kubectl: TYPE NAME -n NAMESPACE.
func kubectlTarget(c verdict.Change) string {
	typ := strings.ToLower(c.Object.Kind)
	if version, err := schema.ParseGroupVersion(c.APIVersion); err == nil && version.Group != "" {
		typ += "." + version.Group
	}
	target := Shell(typ) + " " + Shell(c.Object.Name)
	if strings.HasPrefix(c.Object.Name, "-") { // not a flag
		target = Shell(typ + "/" + c.Object.Name)
	}
	if c.Object.Namespace != "" {
		target += " --namespace=" + Shell(c.Object.Namespace)
	}
	return target
}

// JSONPatch returns changes of fields as a JSON patch (RFC 6902), quoted for a shell.
func JSONPatch(changes []verdict.Change) string {
	type operation struct {
		Op    verdict.Op      `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value,omitempty"`
	}
	all := make([]operation, len(changes))
	for i, c := range changes {
		all[i] = operation{c.Op, c.Path, c.Value}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "'[]'"
	}
	return "'" + oneLine(text) + "'"
}

// oneLine returns the same JSON in one line that a page shows as it is, and without the quotation
// mark of shells: in JSON, these characters stand in strings, where they can be escaped. Others
// stay: kubectl reads JSON as YAML, which has no pairs of surrogates.
func oneLine(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ') // only between tokens: strings have them escaped
		case r == '\'' || r <= 0xffff && !Exact(string(r)):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Shell quotes an argument for a POSIX shell.
func Shell(argument string) string {
	if argument != "" && strings.IndexFunc(argument, needsQuoting) < 0 {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

func needsQuoting(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("_-./:=@%+,", r)
}

// Exact reports whether texts are shown on a page as they are: [Page] replaces control
// characters, so that a command with them would do something else.
func Exact(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return Printable(text) != text })
}
