package attackpaths

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// take carries out one step: one function for each technique. What a technique makes of the
// start's credential is noted in the executor.
func (e *executor) take(ctx context.Context, s step) error {
	do, ok := map[attackpaths.Code]func(context.Context, step) error{
		attackpaths.PodOnNode:                 e.podOnNode,
		attackpaths.PodTokenOnNode:            e.podTokenOnNode,
		attackpaths.TokenOfPodOnNode:          e.tokenOfPodOnNode,
		attackpaths.SecretOnNode:              e.secretOnNode,
		attackpaths.PodToken:                  e.podToken,
		attackpaths.PodSecret:                 e.podSecret,
		attackpaths.SecretRead:                e.secretRead,
		attackpaths.ServiceAccountTokenSecret: e.serviceAccountTokenSecret,
		attackpaths.TokenRequest:              e.tokenRequest,
		attackpaths.Impersonate:               e.impersonate,
		attackpaths.PodCreate:                 e.podCreate,
		attackpaths.PodUpdate:                 e.podUpdate,
		attackpaths.PodExec:                   e.podExec,
		attackpaths.NodeProxy:                 e.nodeProxy,
		attackpaths.PodEscape:                 e.podEscape,
		attackpaths.BindRole:                  e.bindRole,
		attackpaths.EscalateRole:              e.escalateRole,
		attackpaths.ApproveCertificate:        e.approveCertificate,
		attackpaths.NamespaceRelabel:          e.namespaceRelabel,
		attackpaths.VolumeControl:             e.volumeControl,
		attackpaths.ControlPlaneNode:          e.controlPlaneNode,
		attackpaths.Masters:                   e.masters,
		attackpaths.BootstrapToken:            e.bootstrapToken,
		attackpaths.SignCertificate:           e.signCertificate,
		attackpaths.AdmissionControl:          e.admissionControl,
		attackpaths.APIService:                e.apiService,
		attackpaths.NodeIdentityConfig:        e.nodeIdentityConfig,
		attackpaths.StealPods:                 e.stealPods,
	}[s.Technique]
	if !ok {
		return fmt.Errorf("no function carries it out")
	}
	if err := e.deleteFirst(ctx, s); err != nil {
		return err
	}
	var last error
	for _, a := range e.beginning(s) {
		s.as = a
		if last = do(ctx, s); last == nil {
			return nil
		}
	}
	return last
}

// mayText is the text of a step that a right makes possible: verb, resource, subresource, and
// either a name or a scope.
var mayText = regexp.MustCompile(
	`^may (\S+) ([a-z]+)(?:/([a-z]+))?(?: (\S+))?(?: in (?:namespace (\S+)|the whole cluster))?(?:; .*)?$`)

// may is the resource and subresource of the right that makes a step possible.
func (s step) may() (resource, subresource string) {
	because, _, _ := strings.Cut(s.Because, " where Pod Security")
	m := mayText.FindStringSubmatch(because)
	if m == nil {
		return "", ""
	}
	return m[2], m[3]
}
