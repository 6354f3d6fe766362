package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// profile identifies an instance profile. A profile that was deleted and created again has
// the same ARN and another id. Instances with the old profile have lost their role.
type profile struct{ arn, id string }

// requestLife bounds a request with all its tries. kube-apiserver waits 10 seconds for a
// webhook.
const requestLife = 8 * time.Second

// profiles looks up the roles of profiles. Requests for the same profile are coalesced.
type profiles struct {
	options  Options
	limiter  *rate.Limiter
	known    *memory[[]string]
	inFlight singleflight.Group
}

func newProfiles(o Options) *profiles {
	return &profiles{options: o, limiter: rate.NewLimiter(rate.Limit(o.PerSecond), o.Burst), known: newMemory[[]string](o.Size, o.Now)}
}

// roles returns the ARNs of the roles in a profile, with their paths.
func (p *profiles) roles(ctx context.Context, of profile) ([]string, error) {
	key := of.arn + " " + of.id
	if roles, ok := p.known.get(key); ok {
		return slices.Clone(roles), nil
	}
	// No caller's context ends the request, because other callers may wait for it.
	answer := p.inFlight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), requestLife)
		defer cancel()
		asked := p.options.Now()
		roles, err := p.ask(ctx, of)
		if err == nil {
			p.known.keep(key, roles, asked.Add(p.lasts(roles)))
		}
		return roles, err
	})
	select {
	case result := <-answer:
		if result.Err != nil {
			return nil, result.Err
		}
		return slices.Clone(result.Val.([]string)), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the answer of IAM about %s: %w", of.arn, ctx.Err())
	}
}

// lasts is how long an answer is cached. An answer without roles may change soon.
func (p *profiles) lasts(roles []string) time.Duration {
	if len(roles) == 0 {
		return min(missingTTL, p.options.TTL)
	}
	return p.options.TTL
}

func (p *profiles) ask(ctx context.Context, of profile) ([]string, error) {
	if p.options.IAM == nil {
		return nil, errors.New("no client of IAM is configured")
	}
	// Names of profiles are unique in an account, regardless of paths.
	name := of.arn[strings.LastIndexByte(of.arn, '/')+1:]
	answer, err := p.request(ctx, &awsiam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	switch {
	case unknownProfile(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking IAM about %s: %w", of.arn, err)
	}
	return rolesIn(answer.InstanceProfile, of)
}

func unknownProfile(err error) bool {
	var unknown *types.NoSuchEntityException
	return errors.As(err, &unknown)
}

func rolesIn(answer *types.InstanceProfile, of profile) ([]string, error) {
	if answer == nil {
		return nil, fmt.Errorf("IAM answered a request about %s without a profile", of.arn)
	}
	if arn := aws.ToString(answer.Arn); arn != of.arn {
		return nil, fmt.Errorf("IAM answered a request about %s with %s: requests to EC2 and IAM must use credentials of the same account",
			of.arn, arn)
	}
	if aws.ToString(answer.InstanceProfileId) != of.id {
		return nil, nil
	}
	var roles []string
	for n := range answer.Roles {
		roles = append(roles, aws.ToString(answer.Roles[n].Arn))
	}
	slices.Sort(roles)
	return roles, nil
}
