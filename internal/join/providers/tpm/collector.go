package tpm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

const (
	// DefaultDevice is the TPM behind the kernel's resource manager.
	DefaultDevice = "/dev/tpmrm0"
	// DefaultEventLog is the firmware's log of what was booted.
	DefaultEventLog = "/sys/kernel/security/tpm0/binary_bios_measurements"
)

// CollectorOptions say where the TPM is.
type CollectorOptions struct {
	// Device is the TPM's device, or a socket of an emulator.
	Device string
	// EventLog is the file of the event log.
	EventLog string
}

// Collector is the machine's half of the provider. It is not safe for concurrent use.
type Collector struct {
	options CollectorOptions
	// loaded are the keys whose challenge has not come yet.
	loaded *loadedKeys
}

var (
	_ attest.Collector = (*Collector)(nil)
	_ attest.Responder = (*Collector)(nil)
)

// NewCollector returns a collector.
func NewCollector(options CollectorOptions) *Collector { return &Collector{options: options} }

// NodeName returns the hostname.
func (*Collector) NodeName(context.Context) (string, error) { return alwaysallow.Hostname() }

// Collect makes an attestation key, and returns the keys of the TPM.
func (c *Collector) Collect(_ context.Context, about attest.Binding) ([]byte, error) {
	c.unload()
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	c.loaded = loaded
	shown := &keys{PublicKey: about.PublicKey, EKCertificate: loaded.certificate, Model: loaded.tpm.model()}
	shown.EK, shown.AK = tpm2.Marshal(loaded.ek.public), tpm2.Marshal(loaded.ak.public)
	return json.Marshal(evidence{Keys: shown})
}

// Respond decrypts the secret of the service, and quotes the PCRs.
func (c *Collector) Respond(_ context.Context, about attest.Binding, text []byte) ([]byte, error) {
	var asked challenge
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, fmt.Errorf("read the challenge: %w", err)
	}
	loaded := c.loaded
	if loaded == nil {
		return nil, fmt.Errorf("the challenge is for keys that are not loaded")
	}
	defer c.unload()
	var err error
	given := &answer{Sealed: asked.Sealed}
	if given.Secret, err = loaded.activate(asked.Credential, asked.Secret); err != nil {
		return nil, err
	}
	if err := loaded.quote(given, asked.PCRs, quoted(asked.Sealed, about.PublicKey)); err != nil {
		return nil, err
	}
	if asked.EventLog {
		if given.EventLog, err = os.ReadFile(c.options.EventLog); err != nil {
			return nil, fmt.Errorf("read the event log of the firmware: %w", err)
		}
	}
	return json.Marshal(evidence{Answer: given})
}

// EKHash returns the hash of the endorsement key, with which a Machine registers this TPM.
func (c *Collector) EKHash() (string, error) {
	loaded, err := c.load()
	if err != nil {
		return "", err
	}
	defer loaded.close()
	key, err := tpm2.Pub(*loaded.ek.public)
	if err != nil {
		return "", fmt.Errorf("read the endorsement key: %w", err)
	}
	return v1alpha1.HashOf(key)
}

func (c *Collector) unload() {
	if c.loaded != nil {
		c.loaded.close()
		c.loaded = nil
	}
}

// loadedKeys are the keys of a TPM while they are loaded.
type loadedKeys struct {
	tpm    *device
	ek, ak *loadedKey
	// certificate is the certificate of the endorsement key; empty if the TPM has none.
	certificate []byte
}

type loadedKey struct {
	handle tpm2.TPMHandle
	name   tpm2.TPM2BName
	public *tpm2.TPMTPublic
}

func (c *Collector) load() (*loadedKeys, error) {
	opened, err := open(c.options.Device)
	if err != nil {
		return nil, fmt.Errorf("open the TPM: %w", err)
	}
	l := &loadedKeys{tpm: &device{opened}}
	if err := l.create(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// create loads the first endorsement key that has a certificate, or else the RSA key of the low range, and makes an attestation key.
func (l *loadedKeys) create() error {
	kinds, which := certifiedKeys(), 0
	for i := range kinds {
		certificate, err := l.tpm.readNV(kinds[i].index)
		if err != nil {
			return fmt.Errorf("read the certificate of the endorsement key: %w", err)
		}
		if len(certificate) > 0 {
			l.certificate, which = certificate, i
			break
		}
	}
	template, err := l.tpm.templateOf(&kinds[which])
	if err != nil {
		return err
	}
	if l.ek, err = l.tpm.createPrimary(template); err != nil {
		return fmt.Errorf("load the endorsement key: %w", err)
	}
	for _, template := range attestationTemplates() {
		if l.ak, err = l.tpm.createPrimary(template); err == nil {
			return nil
		}
	}
	return fmt.Errorf("make an attestation key: %w", err)
}

// close unloads the keys. Errors are not of interest: the kernel's resource manager unloads them too.
func (l *loadedKeys) close() {
	for _, key := range []*loadedKey{l.ek, l.ak} {
		if key != nil {
			_, _ = tpm2.FlushContext{FlushHandle: key.handle}.Execute(l.tpm)
		}
	}
	_ = l.tpm.Close()
}
