package tpm

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func certificates(t testing.TB, file string) (all []*x509.Certificate) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// Genuine certificates are accepted with their authorities, and with no bit changed; see testdata/google/README.md.
func TestGenuineCertificates(t *testing.T) {
	pool := x509.NewCertPool()
	for _, c := range certificates(t, "testdata/google/authorities.pem") {
		pool.AddCert(c)
	}
	s := newService(t, Options{Authorities: pool})
	files, err := filepath.Glob("testdata/google/*_enc_cert.pem")
	if err != nil || len(files) != 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			genuine := certificates(t, file)[0]
			trusted, vouched, err := s.vouch(genuine.Raw, genuine.PublicKey)
			if !trusted || err != nil || !strings.HasSuffix(vouched, "vouches for the TPM") {
				t.Errorf("got %v, %s, %v", trusted, vouched, err)
			}
			if trusted, _, _ := newService(t, Options{Authorities: newVendor(t).pool()}).vouch(genuine.Raw, genuine.PublicKey); trusted {
				t.Error("another vendor vouches for it")
			}
			for i := range 8 * len(genuine.Raw) {
				changed := bytes.Clone(genuine.Raw)
				changed[i/8] ^= 1 << (i % 8)
				if trusted, vouched, _ := s.vouch(changed, genuine.PublicKey); trusted {
					t.Errorf("bit %d: %s", i, vouched)
				}
			}
		})
	}
}
