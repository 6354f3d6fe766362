package aws

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// question is the input of the checks.
type question struct {
	options  *Options
	document *identitydocument.Document
	instance *instance
	remote   netip.Addr
}

// checkPlace makes the checks that need only the document.
func (a *Attestor) checkPlace(document *identitydocument.Document) *attest.Refusal {
	return first(question{options: &a.options, document: document}, question.checkAccount, question.checkRegion)
}

// checkInstance makes the checks that need EC2, the most specific first.
func (a *Attestor) checkInstance(document *identitydocument.Document, found *instance, remote netip.Addr) *attest.Refusal {
	return first(question{&a.options, document, found, remote},
		question.checkState,
		question.checkContradictions,
		question.checkVPC,
		question.checkCluster,
		question.checkProfile,
		question.checkSource,
	)
}

// first returns the first refusal.
func first(q question, checks ...func(question) *attest.Refusal) *attest.Refusal {
	for _, check := range checks {
		if refusal := check(q); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (q question) checkAccount() *attest.Refusal {
	if slices.Contains(q.options.Accounts, q.document.AccountID) {
		return nil
	}
	return q.refuse(WrongAccount, "is in account %s, want %s", q.document.AccountID, either(q.options.Accounts))
}

func (q question) checkRegion() *attest.Refusal {
	if slices.Contains(q.options.Regions, q.document.Region) {
		return nil
	}
	return q.refuse(WrongRegion, "is in region %s, want %s", q.document.Region, either(q.options.Regions))
}

func (q question) checkState() *attest.Refusal {
	switch {
	case q.instance.state == types.InstanceStateNameRunning:
		return nil
	case q.instance.ended():
		return q.refuse(InstanceTerminated, "is %s", q.instance.state)
	}
	return q.refuse(InstanceNotRunning, "is %s, not running", orNone(string(q.instance.state)))
}

// staleness is the tolerated difference between the start of an instance in a document
// and in EC2.
const staleness = time.Minute

// checkContradictions compares the document with EC2. A genuine document differs only
// after the instance was stopped and started, when there is a new one.
func (q question) checkContradictions() *attest.Refusal {
	document, found := q.document, q.instance
	var address netip.Addr
	if document.PrivateIP != "" {
		address = netip.MustParseAddr(document.PrivateIP)
	}
	switch {
	case document.AccountID != found.account:
		return q.refuse(DocumentContradicted, "is in account %s by its document, in %s by EC2", document.AccountID, orNone(found.account))
	case document.AvailabilityZone != found.zone:
		return q.refuse(DocumentContradicted, "is in zone %s by its document, in %s by EC2", document.AvailabilityZone, orNone(found.zone))
	case address.IsValid() && !slices.Contains(found.private, address):
		return q.refuse(DocumentContradicted, "has address %s by its document, and %s by EC2", address, listed(found.private))
	case document.PendingTime.Add(staleness).Before(found.started):
		return q.refuse(DocumentContradicted, "was started at %s by its document, and again at %s by EC2: the document is an old one",
			document.PendingTime.Format(time.RFC3339), found.started.UTC().Format(time.RFC3339))
	}
	return nil
}

func (q question) checkVPC() *attest.Refusal {
	if slices.Contains(q.options.VPCs, q.instance.vpc) {
		return nil
	}
	return q.refuse(WrongVPC, "is in VPC %s, want %s", orNone(q.instance.vpc), either(q.options.VPCs))
}

// checkCluster requires one of the two tags of an instance's cluster:
// KubernetesCluster=NAME, or kubernetes.io/cluster/NAME of the cloud provider.
func (q question) checkCluster() *attest.Refusal {
	name, key := q.options.ClusterName, q.options.ClusterTag
	if q.instance.tags[key] == name {
		return nil
	}
	byName := "kubernetes.io/cluster/" + name
	if value := q.instance.tags[byName]; value == "owned" || value == "shared" {
		return nil
	}
	return q.refuse(WrongCluster, "has neither the tag %s=%s nor %s with the value owned or shared; its %s is %s",
		key, name, byName, key, orNone(clip(q.instance.tags[key])))
}

// profileForm is a name or an ARN of an instance profile, in any partition, with or
// without a path.
var profileForm = regexp.MustCompile(`^(arn:[a-z-]+:iam::[0-9]{12}:instance-profile/([!-~]+/)?)?[A-Za-z0-9+=,.@_-]{1,128}$`)

// checkProfile compares names within the instance's account. There, names of profiles are
// unique regardless of paths.
func (q question) checkProfile() *attest.Refusal {
	wanted, arn := q.options.InstanceProfiles, q.instance.profile
	if len(wanted) == 0 {
		return nil
	}
	if profileForm.MatchString(arn) {
		within := fmt.Sprintf(":iam::%s:instance-profile/", q.document.AccountID)
		name := arn[strings.LastIndexByte(arn, '/')+1:]
		if slices.Contains(wanted, arn) || strings.Contains(arn, within) && slices.Contains(wanted, name) {
			return nil
		}
	}
	return q.refuse(WrongInstanceProfile, "has the instance profile %s, want %s", orNone(clip(arn)), either(wanted))
}

func (q question) checkSource() *attest.Refusal {
	if q.options.SkipSourceAddress || slices.Contains(q.instance.sources, q.remote) {
		return nil
	}
	return q.refuse(WrongSourceAddress, "sends from %s; the request came from %s", listed(q.instance.sources), q.remote)
}

// refuse returns a refusal about the instance.
func (q question) refuse(code verdict.Code, format string, args ...any) *attest.Refusal {
	return attest.Refuse(code, "instance %s "+format, append([]any{q.document.InstanceID}, args...)...)
}

func either(values []string) string { return strings.Join(values, " or ") }

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

func listed(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, address := range addresses {
		texts[i] = address.String()
	}
	return orNone(strings.Join(texts, ", "))
}
