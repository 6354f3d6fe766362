package server

import (
	"context"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
)

func (p *preparation) key() error {
	options := key.Options{ClusterID: p.config.Key.ClusterID, Registry: p.registry, Challenger: p.challenge()}
	var err error
	if options.Authorities, err = readPool("bootstrap.key.certificateAuthorityFile", p.config.Key.CertificateAuthorityFile); err != nil {
		return err
	}
	p.make(func(context.Context) (attest.Attestor, error) { return key.New(options), nil })
	return nil
}
