package cli

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/typeschema"
)

// TestSchemasOfProviders compares the schemas of the documents that programs of providers read and write with the types.
func TestSchemasOfProviders(t *testing.T) {
	const folder = "provider/"
	g := generator(t)
	for kind, d := range map[string]struct {
		of   any
		says string
	}{
		v1alpha1.AttestRequestKind:   {v1alpha1.AttestRequest{}, "Asks the program on the server which machine shows this evidence."},
		v1alpha1.AttestResponseKind:  {v1alpha1.AttestResponse{}, "The answer of the program on the server: exactly one of its fields."},
		v1alpha1.CollectRequestKind:  {v1alpha1.CollectRequest{}, "Asks the program on the machine for evidence, or for the node's name."},
		v1alpha1.CollectResponseKind: {v1alpha1.CollectResponse{}, "The answer of the program on the machine."},
	} {
		made, err := g.Schema(typeschema.Document{
			ID: schemasURL + folder + kind + ".json", Description: d.says, APIVersion: v1alpha1.Group + "/" + v1alpha1.Version,
			Kind: kind, Type: reflect.TypeOf(d.of),
		})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		writeGolden(t, filepath.Join(schemasFolder, folder, kind+".json"), made)
	}
}
