package iam

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// ParseFile reads the mappings of a file, YAML or JSON: the lists mapRoles, mapUsers and
// mapAccounts, at its top or under "server", as in the config file of
// aws-iam-authenticator. Path is the name of the file in findings, whose places have its
// lines. Letter case in the names of lists does not matter.
//
// Unlike a ConfigMap's key, an empty file is Broken, because a file that is being written
// is empty for a moment. "mapRoles: []" is a file without mappings.
func ParseFile(text []byte, path string) (*Mappings, []finding.Finding) {
	r := &reader{source: "file " + path, at: finding.Place{File: path}, inFile: true, sessions: true}
	if !r.open(string(text), "") {
		return r.finish(allLists())
	}
	var root *yaml.Node
	if first := firstOf(r.yaml); first != nil {
		root = follow(first)
	}
	if root == nil || root.Kind != yaml.MappingNode {
		message := "the file is empty"
		if root != nil && !isNull(root) {
			message = fmt.Sprintf("the file is %s: want an object", describe(root))
		}
		r.found(finding.Finding{
			Code: MappingSyntax, Severity: finding.Error, Place: r.place("", 1),
			Message: message, Consequence: r.unreadable(),
			Remedy: "write mapRoles, mapUsers and mapAccounts; \"mapRoles: []\" maps no role",
		})
		return r.finish(allLists())
	}
	f := &mappingFile{reader: r, lists: map[string]*yaml.Node{}, broken: map[string]bool{}}
	f.object(root, "")
	return r.finish(f.read())
}

func allLists() []string { return []string{MapRoles, MapUsers, MapAccounts} }

// mappingFile is a file with its lists.
type mappingFile struct {
	*reader
	lists  map[string]*yaml.Node
	keys   [3]string
	broken map[string]bool
}

// object finds the lists in the object at the top, or in that under "server".
func (f *mappingFile) object(node *yaml.Node, under string) {
	for i := 0; i+1 < len(node.Content) && f.left >= 0; i += 2 {
		f.left--
		name, value := follow(node.Content[i]), node.Content[i+1]
		key := under + printable(name.Value)
		switch n := listNamed(name.Value); {
		case n >= 0:
			f.put(n, value, key, node.Content[i])
		case under == "" && foldASCII(name.Value) == "server" && follow(value).Kind == yaml.MappingNode:
			f.object(follow(value), key+".")
		default:
			f.unknown(name.Value, f.placeOf(key, node.Content[i]), under)
		}
	}
}

// listNamed returns the index of the list with a name, or -1.
func listNamed(name string) int {
	for i, list := range mappingLists() {
		if foldASCII(name) == foldASCII(list.name) {
			return i
		}
	}
	return -1
}

// put records a list. If there are two of one name, none is used.
func (f *mappingFile) put(n int, value *yaml.Node, key string, at *yaml.Node) {
	name := mappingLists()[n].name
	if before, ok := f.lists[name]; ok {
		f.broken[name] = true
		f.found(finding.Finding{
			Code: MappingSyntax, Severity: finding.Error, Place: f.placeOf(key, at),
			Message:     fmt.Sprintf("%s is given twice, also in line %d", name, f.yaml.Line(before)),
			Consequence: f.unreadable(),
			Remedy:      "put all entries in one list",
		})
		return
	}
	f.lists[name], f.keys[n] = value, key
}

// unknown reports a key that is ignored, unless it is another setting of
// aws-iam-authenticator.
func (f *mappingFile) unknown(name string, place finding.Place, under string) {
	found := finding.Finding{
		Code: MappingUnknownKey, Severity: finding.Warning, Place: place,
		Message:     fmt.Sprintf("the key %s is ignored", quote(name)),
		Consequence: "its content maps no caller",
		Remedy:      "delete it; the keys are mapRoles, mapUsers and mapAccounts",
	}
	switch folded := foldASCII(name); {
	case isSettingOfReference(folded, under):
		return
	case folded == "reservedprefixconfig":
		found.Consequence = "the names that it reserves are not reserved"
		found.Remedy = "set iam.reserved in the server's config file"
	case folded == "data" && under == "":
		found.Severity = finding.Error
		found.Remedy = "this is a ConfigMap: write the lists in its keys at the top of the file, or configure the source ConfigMap"
	default:
		if instead := meant(name, allLists()); instead != "" {
			found.Severity, found.Remedy = finding.Error, "write "+instead
		}
	}
	f.found(found)
}

// isSettingOfReference reports whether aws-iam-authenticator has a setting with that
// name, in lower case, that is not about mappings.
func isSettingOfReference(name, under string) bool {
	if under == "" {
		return name == "clusterid"
	}
	switch name {
	case "partition", "port", "hostname", "address", "statedir", "generatekubeconfig", "kubeconfigpregenerated",
		"kubeconfig", "master", "backendmode", "dynamicfilepath", "dynamicbackendmodepath", "scrubbedaccounts",
		"ec2describeinstancesrolearn", "ec2describeinstancesqps", "ec2describeinstancesburst":
		return true
	}
	return false
}

// read reads the lists and returns those that cannot be read.
func (f *mappingFile) read() []string {
	var broken []string
	for i, list := range mappingLists() {
		node, ok := f.lists[list.name]
		if f.broken[list.name] || ok && !f.list(node, list, f.keys[i]) {
			broken = append(broken, list.name)
		}
	}
	return broken
}
