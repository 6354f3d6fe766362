package tpm

import (
	"bytes"
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/internal/testing/swtpm"
)

// opened opens an emulator, and removes the certificates at the indexes.
func opened(t *testing.T, socket string, indexes ...tpm2.TPMHandle) *device {
	t.Helper()
	closer, err := open(socket)
	if err != nil {
		t.Fatal(err)
	}
	d := &device{closer}
	for _, index := range indexes {
		public, err := tpm2.NVReadPublic{NVIndex: index}.Execute(d)
		if err != nil {
			continue // there is none
		}
		_, err = tpm2.NVUndefineSpace{
			AuthHandle: tpm2.TPMRHPlatform, NVIndex: tpm2.NamedHandle{Handle: index, Name: public.NVName},
		}.Execute(d)
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// put writes an index, as a vendor does.
func (d *device) put(t *testing.T, index tpm2.TPMHandle, data []byte) {
	t.Helper()
	_, err := tpm2.NVDefineSpace{AuthHandle: tpm2.TPMRHOwner, PublicInfo: tpm2.New2B(tpm2.TPMSNVPublic{
		NVIndex: index, NameAlg: tpm2.TPMAlgSHA256, DataSize: uint16(len(data)),
		Attributes: tpm2.TPMANV{OwnerWrite: true, OwnerRead: true, AuthRead: true, NoDA: true, NT: tpm2.TPMNTOrdinary},
	})}.Execute(d)
	for offset := 0; err == nil && offset < len(data); offset += nvChunk {
		var public *tpm2.NVReadPublicResponse
		if public, err = (tpm2.NVReadPublic{NVIndex: index}).Execute(d); err != nil {
			break
		}
		_, err = tpm2.NVWrite{
			AuthHandle: tpm2.TPMRHOwner, NVIndex: tpm2.NamedHandle{Handle: index, Name: public.NVName},
			Data: tpm2.TPM2BMaxNVBuffer{Buffer: data[offset:min(len(data), offset+nvChunk)]}, Offset: uint16(offset),
		}.Execute(d)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func allIndexes() (all []tpm2.TPMHandle) {
	for _, kind := range certifiedKeys() {
		all = append(all, kind.index)
	}
	return all
}

// TPMs of vendors have the certificate of one kind of endorsement key, and perhaps a nonce or a template.
func TestKindsOfEndorsementKeys(t *testing.T) {
	authority := swtpm.NewAuthority(t)
	nonce := bytes.Repeat([]byte("nonce"), 4)
	ownTemplate := tpm2.RSAEKTemplate
	ownTemplate.ObjectAttributes.NoDA = true
	var hashes []string
	for _, tc := range []struct {
		rule                string
		index               tpm2.TPMHandle
		curve               tpm2.TPMECCCurve // 0: RSA
		withNonce, template bool
	}{
		{"RSA, low range", 0x01c00002, 0, false, false},
		{"RSA with a nonce", 0x01c00002, 0, true, false},
		{"RSA with a template", 0x01c00002, 0, false, true},
		{"RSA with both", 0x01c00002, 0, true, true},
		{"P-256, low range", 0x01c0000a, tpm2.TPMECCNistP256, false, false},
		{"P-256 with a nonce", 0x01c0000a, tpm2.TPMECCNistP256, true, false},
		{"RSA, high range", 0x01c00012, 0, false, false},
		{"P-256, high range", 0x01c00014, tpm2.TPMECCNistP256, false, false},
		{"P-384, high range", 0x01c00016, tpm2.TPMECCNistP384, false, false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			socket := authority.Start(t)
			d := opened(t, socket, allIndexes()...)
			if tc.withNonce {
				d.put(t, tc.index+1, nonce)
			}
			if tc.template {
				d.put(t, tc.index+2, tpm2.Marshal(&ownTemplate))
			}
			kinds, vendor := certifiedKeys(), newVendor(t)
			for i := range kinds {
				if kinds[i].index != tc.index {
					continue
				}
				template, err := d.templateOf(&kinds[i])
				if err != nil {
					t.Fatal(err)
				}
				ek, err := d.createPrimary(template)
				if err != nil {
					t.Fatal(err)
				}
				key, err := tpm2.Pub(*ek.public)
				if err != nil {
					t.Fatal(err)
				}
				d.put(t, tc.index, vendor.issue(key, nil))
				if curve, err := ek.public.Parameters.ECCDetail(); tc.curve != 0 && (err != nil || curve.CurveID != tc.curve) {
					t.Errorf("the curve is %+v: %v", curve, err)
				}
				if ek.public.ObjectAttributes.NoDA != tc.template {
					t.Errorf("the TPM's own template counts: %v", ek.public.ObjectAttributes.NoDA)
				}
				if _, err := (tpm2.FlushContext{FlushHandle: ek.handle}).Execute(d); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			hash := joinsWith(t, socket, vendor.pool(), "CN=Vendor vouches for the TPM")
			if slices.Contains(hashes, hash) {
				t.Error("the key is the one of another kind")
			}
			hashes = append(hashes, hash)
		})
	}
}

// The emulator's own tools make the key and the certificate.
func TestHighRangeOfTheEmulator(t *testing.T) {
	authority := swtpm.NewAuthority(t)
	socket := authority.Start(t, "--ecc")
	d := opened(t, socket, 0x01c00002, 0x01c0000a)
	certificate, err := d.readNV(0x01c00016)
	if err != nil || len(certificate) == 0 {
		t.Fatalf("the emulator has no certificate of a key on P-384: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	joinsWith(t, socket, authority.Pool(t), "CN=swtpm-localca vouches for the TPM")
}

// joinsWith lets a TPM join by its certificate, and returns the hash of its endorsement key.
func joinsWith(t *testing.T, socket string, authorities *x509.CertPool, vouched string) string {
	t.Helper()
	collector := NewCollector(CollectorOptions{Device: socket})
	hash, err := collector.EKHash()
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{
		Authorities: authorities, TPM: settings{NodeName: "tpm-{{.EKHash}}"}, Machines: registered{}, Sealer: sealer(t, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	name := "tpm-" + strings.TrimPrefix(hash, "sha256:")[:20]
	id, err := join(t, a, collector, name)
	if err != nil {
		t.Fatal(err)
	}
	if id.NodeName != name || !strings.Contains(id.Description, vouched) {
		t.Errorf("got %+v", id)
	}
	return hash
}
