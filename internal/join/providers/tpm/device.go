package tpm

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
)

// device is an open TPM.
type device struct{ transport.TPMCloser }

// attestationTemplates are the templates of attestation keys, the preferred one first. Random numbers in them make a new key
// each time.
func attestationTemplates() []*tpm2.TPMTPublic {
	random := func(size int) []byte {
		number := make([]byte, size)
		_, _ = rand.Read(number) // It never fails.
		return number
	}
	attributes := tpm2.TPMAObject{
		FixedTPM: true, FixedParent: true, SensitiveDataOrigin: true, UserWithAuth: true, NoDA: true, Restricted: true, SignEncrypt: true,
	}
	none := tpm2.TPMTSymDefObject{Algorithm: tpm2.TPMAlgNull}
	return []*tpm2.TPMTPublic{
		{
			Type: tpm2.TPMAlgECC, NameAlg: tpm2.TPMAlgSHA256, ObjectAttributes: attributes,
			Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
				Symmetric: none, CurveID: tpm2.TPMECCNistP256, KDF: tpm2.TPMTKDFScheme{Scheme: tpm2.TPMAlgNull},
				Scheme: tpm2.TPMTECCScheme{
					Scheme:  tpm2.TPMAlgECDSA,
					Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA, &tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
				},
			}),
			Unique: tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
				X: tpm2.TPM2BECCParameter{Buffer: random(32)}, Y: tpm2.TPM2BECCParameter{Buffer: make([]byte, 32)},
			}),
		},
		{
			Type: tpm2.TPMAlgRSA, NameAlg: tpm2.TPMAlgSHA256, ObjectAttributes: attributes,
			Parameters: tpm2.NewTPMUPublicParms(tpm2.TPMAlgRSA, &tpm2.TPMSRSAParms{
				Symmetric: none, KeyBits: 2048,
				Scheme: tpm2.TPMTRSAScheme{
					Scheme:  tpm2.TPMAlgRSASSA,
					Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgRSASSA, &tpm2.TPMSSigSchemeRSASSA{HashAlg: tpm2.TPMAlgSHA256}),
				},
			}),
			Unique: tpm2.NewTPMUPublicID(tpm2.TPMAlgRSA, &tpm2.TPM2BPublicKeyRSA{Buffer: random(256)}),
		},
	}
}

// createPrimary makes the key of the endorsement hierarchy that belongs to a template.
func (d *device) createPrimary(template *tpm2.TPMTPublic) (*loadedKey, error) {
	made, err := tpm2.CreatePrimary{PrimaryHandle: tpm2.TPMRHEndorsement, InPublic: tpm2.New2B(*template)}.Execute(d)
	if err != nil {
		return nil, err
	}
	key := &loadedKey{handle: made.ObjectHandle, name: made.Name}
	key.public, err = made.OutPublic.Contents()
	return key, err
}

// nvChunk is how much of an index is read at once, which every TPM allows.
const nvChunk = 512

// readNV reads an index; nothing if it does not exist.
func (d *device) readNV(index tpm2.TPMHandle) ([]byte, error) {
	found, err := tpm2.NVReadPublic{NVIndex: index}.Execute(d)
	if errors.Is(err, tpm2.TPMRCHandle) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	public, err := found.NVPublic.Contents()
	if err != nil {
		return nil, err
	}
	named := tpm2.AuthHandle{Handle: index, Name: found.NVName, Auth: tpm2.PasswordAuth(nil)}
	var all []byte
	for len(all) < int(public.DataSize) {
		part, err := tpm2.NVRead{
			AuthHandle: named, NVIndex: tpm2.NamedHandle{Handle: index, Name: found.NVName},
			Size: min(nvChunk, public.DataSize-uint16(len(all))), Offset: uint16(len(all)),
		}.Execute(d)
		if err != nil {
			return nil, err
		}
		if len(part.Data.Buffer) == 0 {
			return nil, errors.New("the TPM returned nothing")
		}
		all = append(all, part.Data.Buffer...)
	}
	return all, nil
}

// model returns what the TPM says about itself: "IFX SLB9670 firmware 7.85"; empty if it says nothing.
func (d *device) model() string {
	got, err := tpm2.GetCapability{
		Capability: tpm2.TPMCapTPMProperties, Property: uint32(tpm2.TPMPTManufacturer),
		PropertyCount: uint32(tpm2.TPMPTFirmwareVersion1-tpm2.TPMPTManufacturer) + 1,
	}.Execute(d)
	if err != nil {
		return ""
	}
	properties, err := got.CapabilityData.Data.TPMProperties()
	if err != nil {
		return ""
	}
	var words []string
	for _, p := range properties.TPMProperty {
		letters := string(bytes.Trim(binary.BigEndian.AppendUint32(nil, p.Value), "\x00 "))
		switch {
		case p.Property == tpm2.TPMPTManufacturer:
			words = append(words, letters+" ")
		case p.Property >= tpm2.TPMPTVendorString1 && p.Property < tpm2.TPMPTVendorString1+4:
			words = append(words, letters)
		case p.Property == tpm2.TPMPTFirmwareVersion1:
			words = append(words, fmt.Sprintf(" firmware %d.%d", p.Value>>16, p.Value&0xffff))
		}
	}
	return strings.Join(words, "")
}

// activate decrypts a secret, if it is for the endorsement key and the attestation key.
func (l *loadedKeys) activate(credential, secret []byte) ([]byte, error) {
	auth := tpm2.Policy(tpm2.TPMAlgSHA256, 16, endorsementPolicy)
	if l.ek.public.ObjectAttributes.UserWithAuth {
		auth = tpm2.PasswordAuth(nil)
	}
	activated, err := tpm2.ActivateCredential{
		ActivateHandle: tpm2.AuthHandle{Handle: l.ak.handle, Name: l.ak.name, Auth: tpm2.PasswordAuth(nil)},
		KeyHandle:      tpm2.AuthHandle{Handle: l.ek.handle, Name: l.ek.name, Auth: auth},
		CredentialBlob: tpm2.TPM2BIDObject{Buffer: credential}, Secret: tpm2.TPM2BEncryptedSecret{Buffer: secret},
	}.Execute(l.tpm)
	if err != nil {
		return nil, fmt.Errorf("decrypt the secret of the service: %w", err)
	}
	return activated.CertInfo.Buffer, nil
}

// endorsementPolicy fulfills the policy of endorsement keys of the low range: the authorization of their hierarchy, which is
// empty by default.
func endorsementPolicy(t transport.TPM, session tpm2.TPMISHPolicy, nonce tpm2.TPM2BNonce) error {
	_, err := tpm2.PolicySecret{AuthHandle: tpm2.TPMRHEndorsement, PolicySession: session, NonceTPM: nonce}.Execute(t)
	return err
}

// pcrTries is how often PCRs are read that change meanwhile.
const pcrTries = 3

// quote fills in the values of the PCRs and a quote of them.
func (l *loadedKeys) quote(given *answer, pcrs []int, about []byte) error {
	for range pcrTries {
		values, err := l.tpm.readPCRs(pcrs)
		if err != nil {
			return err
		}
		made, err := tpm2.Quote{
			SignHandle:     tpm2.AuthHandle{Handle: l.ak.handle, Name: l.ak.name, Auth: tpm2.PasswordAuth(nil)},
			QualifyingData: tpm2.TPM2BData{Buffer: about},
			InScheme:       tpm2.TPMTSigScheme{Scheme: tpm2.TPMAlgNull}, PCRSelect: selection(pcrs),
		}.Execute(l.tpm)
		if err != nil {
			return fmt.Errorf("quote the PCRs: %w", err)
		}
		again, err := l.tpm.readPCRs(pcrs)
		if err != nil {
			return err
		}
		if !equal(values, again) {
			continue
		}
		given.PCRs, given.Quote, given.Signature = values, made.Quoted.Bytes(), tpm2.Marshal(made.Signature)
		return nil
	}
	return errors.New("the values of the PCRs change all the time")
}

func equal(a, b [][]byte) bool { return bytes.Equal(bytes.Join(a, nil), bytes.Join(b, nil)) }

// readPCRs returns the values of PCRs of the SHA-256 bank. A TPM returns eight at once.
func (d *device) readPCRs(pcrs []int) ([][]byte, error) {
	var values [][]byte
	for _, pcr := range pcrs {
		read, err := tpm2.PCRRead{PCRSelectionIn: selection([]int{pcr})}.Execute(d)
		if err != nil {
			return nil, fmt.Errorf("read PCR %d: %w", pcr, err)
		}
		if len(read.PCRValues.Digests) != 1 {
			return nil, fmt.Errorf("the TPM has no PCR %d with SHA-256: is the SHA-256 bank active in the firmware's settings?", pcr)
		}
		values = append(values, read.PCRValues.Digests[0].Buffer)
	}
	return values, nil
}
