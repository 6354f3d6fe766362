// Package tpm joins with the reference implementation of a TPM 2.0, which needs a C compiler and the headers of OpenSSL. The
// provider's own tests use swtpm.
package tpm
