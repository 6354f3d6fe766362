package approve

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"slices"
)

// The limits of RSA keys: NIST SP 800-131A requires at least 2048 bits, FIPS 186-5 an exponent
// above 2^16; more than 8192 bits only cost time.
const (
	leastRSABits     = 2048
	mostRSABits      = 8192
	leastRSAExponent = 1<<16 + 1
)

// Weakness says what is wrong with a key; empty if it is accepted.
func Weakness(key any) string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		if bits < leastRSABits || bits > mostRSABits {
			return fmt.Sprintf("it is an RSA key of %d bits, want %d to %d", bits, leastRSABits, mostRSABits)
		}
		if key.E < leastRSAExponent || key.E%2 == 0 || key.N.Bit(0) == 0 {
			return fmt.Sprintf("it is an RSA key with the exponent %d, want an odd one from %d, and an odd modulus",
				key.E, leastRSAExponent)
		}
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return fmt.Sprintf("it is an ECDSA key on %s, want P-256, P-384 or P-521", key.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return "it is neither an RSA, an ECDSA nor an Ed25519 key"
	}
	return ""
}

// weakSignature says what is wrong with the signature algorithm of a request.
func weakSignature(algorithm x509.SignatureAlgorithm) string {
	switch algorithm {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
		x509.PureEd25519:
		return ""
	}
	return fmt.Sprintf("it signs with %v, want SHA-256 or better", algorithm)
}
