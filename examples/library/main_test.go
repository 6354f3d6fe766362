package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/node-authorizer/node-authorizer/graph"
)

const shop = "../shop.snapshot"

func TestAsk(t *testing.T) {
	for _, test := range []struct {
		name, node, object string
		want               []string
	}{
		{
			"a pod of the node names the secret", "pay-1", "payments/card-processor",
			[]string{"Allow: secret payments/card-processor is referenced by pod payments/payments-", "on node pay-1\n", "(spec.nodeName)"},
		},
		{
			"only pods of another node name the secret", "web-1", "payments/card-processor",
			[]string{"NoOpinion: ", "on node pay-1, not on node web-1\n"},
		},
		{
			"the volume of a claim names the secret", "web-1", "shop/image-disk",
			[]string{"Allow: ", "persistentvolume catalog-images ← persistentvolumeclaim shop/catalog-images  (spec.claimRef)"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := ask(&out, shop, test.node, "secrets", test.object); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the answer lacks %q:\n%s", want, &out)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	notCompressed := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(notCompressed, []byte(`{"kind":"Pod"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, snapshot, object, want string }{
		{"no such file", "missing.snapshot", "shop/image-disk", "missing.snapshot"},
		{"not compressed", notCompressed, "shop/image-disk", "magic number mismatch"},
		{"a name without a namespace", shop, "image-disk", `"image-disk" is not NAMESPACE/NAME`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := ask(&bytes.Buffer{}, test.snapshot, "web-1", "secrets", test.object)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAnErrorNamesTheLine(t *testing.T) {
	var snapshot bytes.Buffer
	w, err := zstd.NewWriter(&snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("{\"kind\":\"Snapshot\"}\n{\"kind\":\"Pod\",\"spec\":7}\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fill(graph.New(), &snapshot); err == nil || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("error %v, want one with the line", err)
	}
}
