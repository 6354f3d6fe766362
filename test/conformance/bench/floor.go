package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// serveFloor is a server that reads, decodes and counts requests as the real one
// does, and gives each the same answer, made beforehand. It runs in a process of its
// own and takes its addresses and certificates from the same config file.
func serveFloor(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config, err := v1alpha1.Parse(text)
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	if text, err = os.ReadFile(config.Webhook.ClientCAFile); err != nil {
		return err
	}
	authorities.AppendCertsFromPEM(text)
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	metrics := observe.NewMetrics()
	for _, review := range []struct {
		name   string
		decode func([]byte) error
		answer string
	}{
		{
			"authorize", decodesAccess,
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":true}}`,
		},
		{
			"admit", decodesAdmission,
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",` +
				`"response":{"uid":"705ab4f5-6393-11e8-b7cc-000000000000","allowed":true}}`,
		},
		{
			"authenticate", decodesToken,
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,` +
				`"user":{"username":"system:node:worker-1","groups":["system:nodes"]}}}`,
		},
	} {
		mux.Handle("/"+review.name, metrics.HTTP(review.name, constant(review.decode, review.answer)))
	}
	server := &http.Server{
		Addr: config.Webhook.Address, Handler: mux,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 5 * time.Minute,
		TLSConfig: &tls.Config{ClientCAs: authorities, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12},
	}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.ListenAndServeTLS(config.Webhook.CertificateFile, config.Webhook.KeyFile); ctx.Err() == nil {
		return fmt.Errorf("serving the floor: %w", err)
	}
	return nil
}

func decodesAccess(body []byte) error {
	_, err := review.DecodeAccessReview(body)
	return err
}

func decodesToken(body []byte) error {
	_, err := review.DecodeTokenReview(body)
	return err
}

// decodesAdmission decodes the fields that the rules look at in a renewal of a lease or in
// a node's report of its status.
func decodesAdmission(body []byte) error {
	_, err := review.DecodeAdmission(body, func(req *noderestriction.Request) (object, oldObject bool) {
		return req.Resource == "nodes", req.Resource == "nodes"
	})
	return err
}

func constant(decode func([]byte) error, answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = decode(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	})
}
