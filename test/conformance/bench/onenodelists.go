package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// listedKinds are the kinds whose objects API servers cannot select by the values that questions have.
var listedKinds = []struct{ what, path string }{
	{"PersistentVolumes", "/api/v1/persistentvolumes"},
	{"VolumeAttachments", "/apis/storage.k8s.io/v1/volumeattachments"},
}

// listForms are the forms in which an API server lists objects.
var listForms = []struct{ accept, query string }{
	{"application/vnd.kubernetes.protobuf", ""},
	{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ""},
	{"application/json;as=Table;g=meta.k8s.io;v=v1", "?includeObject=None"},
}

// listedBytes counts the bytes of a list of all objects of a kind, in each form.
func (b *bench) listedBytes(config *rest.Config) (table, error) {
	t := table{
		caption: "**All objects of a kind,** in the forms that API servers have, compressed.",
		header:  []string{"kind", "objects", "only metadata", "only the columns of `kubectl get`"},
	}
	for _, kind := range listedKinds {
		row := []string{kind.what}
		for _, form := range listForms {
			n, err := b.received(config, kind.path+form.query, form.accept)
			if err != nil {
				return t, fmt.Errorf("list %s as %s: %w", kind.what, form.accept, err)
			}
			row = append(row, megabytes(float64(n)))
		}
		t.add(row...)
	}
	return t, nil
}

// received returns how many bytes a response has on its connection, without the bytes of connecting.
func (b *bench) received(config *rest.Config, path, accept string) (int64, error) {
	counting, received := countBytes(config)
	client, err := rest.HTTPClientFor(counting)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	if err := discard(b.ctx, client, config.Host+"/version", "application/json"); err != nil {
		return 0, err
	}
	before := received.Load()
	err = discard(b.ctx, client, config.Host+path, accept)
	return received.Load() - before, err
}

func discard(ctx context.Context, client *http.Client, url, accept string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
