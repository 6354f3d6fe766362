package source

import (
	"strings"
	"testing"
)

const goodPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n"}}`

// An invalid document is an error with file, document number and line.
func TestBrokenDocuments(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"wrong type in the n-th YAML document": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# comment\napiVersion: v1\nkind: Pod\nmetadata:\n" +
				"  name: b\n  namespace: shop\nspec:\n  nodeName: 5\n",
			`a.yaml: document 2, line 12: Pod shop/b: spec.nodeName: want a string, got a number`,
		},
		"wrong type deep in YAML": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: x\n    env: []\n" +
				"  - name: y\n    env:\n    - name: A\n      valueFrom:\n        secretKeyRef: db\n",
			`a.yaml: document 1, line 12: Pod a: spec.containers[1].env[0].valueFrom.secretKeyRef: want an object, got a string`,
		},
		"wrong type in YAML flow style": {
			"a.yaml", "\n\n{apiVersion: v1, kind: Pod,\n metadata: {name: a},\n spec: {nodeName: [a]}}",
			`a.yaml: document 1, line 5: Pod a: spec.nodeName: want a string, got a list`,
		},
		"more after a YAML document": {
			"a.yaml", "# x\n{apiVersion: v1, kind: Pod, metadata: {name: a}}\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
			`a.yaml: document 1, line 3: not valid YAML: something follows the document; put --- between documents`,
		},
		"more after an indented YAML document": {
			"a.yaml", "  a: b\nkind: Pod\n",
			`a.yaml: document 1, line 2: not valid YAML: something follows the document; put --- between documents`,
		},
		"more after JSON in YAML": {
			"a.yaml", "# x\n" + goodPod + "\n" + goodPod + "\n",
			`a.yaml: document 1, line 3: not valid YAML: something follows the document; put --- between documents`,
		},
		"more after a scalar": {
			"a.yaml", "--- \"a\"\n\"b\"",
			`a.yaml: document 1, line 2: not valid YAML: something follows the document; put --- between documents`,
		},
		"wrong type in a YAML list": {
			"a.yaml",
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n- apiVersion: v1\n" +
				"  kind: Pod\n  metadata:\n    name: true\n",
			`a.yaml: document 1, item 2, line 11: Pod: metadata.name: want a string, got true or false`,
		},
		"a YAML boolean for a name": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeName: yes\n",
			`a.yaml: document 1, line 5: Pod a: spec.nodeName: want a string, got true or false`,
		},
		"bad indentation in YAML": {
			"a.yaml", "# empty\n---\napiVersion: v1\n kind: Pod\nmetadata: {name: a}\n",
			`a.yaml: document 1, line 4: not valid YAML: mapping values are not allowed in this context`,
		},
		"bad mapping in YAML": {
			"a.yaml", "# x\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  - b\n",
			`a.yaml: document 1, line 6: not valid YAML: did not find expected key`,
		},
		"unclosed quote in YAML": {
			"a.yaml", "apiVersion: v1\nkind: \"Pod\nmetadata: {name: a}\n",
			`a.yaml: document 1, line 2: not valid YAML: found unexpected end of stream`,
		},
		"unclosed flow in YAML": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a\nspec: {}\n",
			`a.yaml: document 1, line 3: not valid YAML: did not find expected ',' or '}'`,
		},
		"a tab in YAML": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n",
			`a.yaml: document 1, line 4: not valid YAML: found character that cannot start any token`,
		},
		"key twice in YAML": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n",
			`a.yaml: document 1, line 5: not valid YAML: key "name" already set in map`,
		},
		"unknown alias": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: *x\n",
			`a.yaml: document 1, line 3: not valid YAML: unknown anchor 'x' referenced`,
		},
		"text that is not a document": {"a.yaml", "hello\n", `a.yaml: document 1, line 1: want an object, got a string`},
		"YAML sequence":               {"a.yaml", "- a\n- b\n", `a.yaml: document 1, line 1: want an object, got a list`},
		"no kind":                     {"a.yaml", "a: b\n", `a.yaml: document 1, line 1: document has no kind`},
		"no apiVersion": {
			"a.yaml", "kind: Pod\nmetadata: {name: a}\n", `a.yaml: document 1, line 1: Pod has no apiVersion`,
		},
		"no name": {
			"a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n",
			`a.yaml: document 1, line 1: Pod: metadata.name is empty`,
		},
		"broken object of a kind not kept": {
			"a.json", `{"apiVersion": "v1", "kind": "Secret", "data": {"a": x}}`,
			`a.json: document 1, line 1: not valid JSON: invalid character 'x' at start of value`,
		},
		"a version that is not known": {
			"a.json", `{"apiVersion": "resource.k8s.io/v9", "kind": "ResourceSlice", "metadata": {"name": "s"}}`,
			`a.json: document 1, line 1: ResourceSlice s: apiVersion resource.k8s.io/v9 is not supported; supported versions ` +
				`are v1, v1beta2, v1beta1, v1alpha3, v1alpha2`,
		},
		"wrong type in JSON": {
			"a.json",
			"\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\"metadata\": {\"name\": \"p\", \"namespace\": \"shop\"},\n" +
				"\"spec\": {\n\"nodeName\":\n5}}",
			`a.json: document 1, line 6: Pod shop/p: spec.nodeName: want a string, got a number`,
		},
		"syntax in JSON": {
			"a.json", goodPod + "\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\"metadata\": {\"name\": 'p'}}",
			`a.json: document 2, line 3: not valid JSON: invalid character '\'' at start of value`,
		},
		"missing comma in JSON": {
			"a.json", goodPod + "\n{\"apiVersion\": \"v1\" \"kind\": \"Pod\"}",
			`a.json: document 2, line 2: not valid JSON: invalid character '"' after object value (expecting ',' or '}')`,
		},
		"missing brace in JSON": {
			"a.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\"metadata\": {\"name\": \"p\"\n}\n" + goodPod,
			`a.json: document 1, line 4: not valid JSON: invalid character '{' after object value (expecting ',' or '}')`,
		},
		"JSON cut off": {
			"a.json", goodPod + "\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\"metadata\": {\"na",
			`a.json: document 2, line 3: file ends in the middle of the document`,
		},
		"key twice in JSON": {
			"a.json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "a", "nodeName": "b"}}`,
			`a.json: document 1, line 1: a field is given twice`,
		},
		"JSON array": {
			"a.json", "[" + goodPod + "]", `a.json: document 1, line 1: want an object, got a list`,
		},
		"JSON key without quotes": {
			"a.json", `{"kind": "Pod", name: 5}`,
			`a.json: document 1, line 1: not valid JSON: invalid character 'a' in literal null (expecting 'u')`,
		},
		"text after JSON": {
			"a.json", goodPod + "\nhello", `a.json: document 2, line 2: want an object, got a string`,
		},
		"brace after JSON": {"a.json", goodPod + "\n}", `a.json: document 2, line 2: want an object, got nothing that is JSON`},
		"item that is not an object": {
			"a.json", "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n" + goodPod + ",\n5]}",
			`a.json: document 1, line 3: want an object as item 2 of the list, got a number`,
		},
		"item without kind": {
			"a.json", "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n" + goodPod + ",\n{\"metadata\": {}}]}",
			`a.json: document 1, item 2, line 3: document has no kind`,
		},
		"wrong type in an item": {
			"a.json",
			"{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n" + goodPod + ",\n{\"kind\": \"Node\", " +
				"\"apiVersion\": \"v1\", \"metadata\": []}]}",
			`a.json: document 1, item 2, line 3: Node: metadata: want an object, got a list`,
		},
		"items without a comma between": {
			"a.json", "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n" + goodPod + "\n" + goodPod + "]}",
			`a.json: document 1, line 3: not valid JSON: invalid character '{' after array element (expecting ',' or ']')`,
		},
		"list cut off": {
			"a.json", "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n" + goodPod + ",\n",
			`a.json: document 1, line 3: file ends in the middle of the document`,
		},
		"items in what is not a list": {
			"a.json", `{"items": [` + goodPod + `], "kind": "Box", "apiVersion": "example.com/v1"}`,
			`a.json: document 1, line 1: document has items but its kind is "Box", which is not a list`,
		},
		"snapshot of a later version": {
			"a.snapshot", `{"apiVersion": "snapshot.node-authorizer.io/v2", "kind": "Snapshot"}`,
			`a.snapshot: document 1, line 1: Snapshot: apiVersion snapshot.node-authorizer.io/v2 is not known to this version ` +
				`of node-authorizer, which reads snapshot.node-authorizer.io/v1alpha1; take the snapshot again`,
		},
		"snapshot cut off between its lines": {
			"a.snapshot",
			`{"apiVersion": "snapshot.node-authorizer.io/v1alpha1", "kind": "Snapshot", "objects": {"Pod": 2}}` + "\n" + goodPod,
			`a.snapshot: snapshot is incomplete: it should hold 2 objects of kind Pod, but holds 1; take it again`,
		},
		"invalid UTF-8": {
			"a.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"a\xffb\"}}",
			`a.json: document 1, line 1: not valid JSON: invalid UTF-8`,
		},
		"lists nested without end": {
			"a.json", strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, 12) + strings.Repeat(`]}`, 12),
			`a.json: document 1, item 1, line 1: List: lists are nested more than 8 deep`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.file, c.text)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != c.want {
				t.Errorf("\n got %s\nwant %s", err, c.want)
			}
		})
	}
}
