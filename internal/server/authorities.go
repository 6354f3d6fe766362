package server

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// parseAuthorities parses PEM certificates. It skips other blocks; a certificate that cannot be
// parsed is an error.
func parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(found)+1, err)
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errNoAuthorities
	}
	return found, nil
}
