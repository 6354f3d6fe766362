package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

// authenticator is the program whose outcomes the predictions of a source's roles are.
func (f *rolePredictor) authenticator(s *mappingSource) string {
	switch {
	case s.purposes != nil:
		return eksAccessEntries
	case f.ours:
		return NodeAuthorizer
	}
	return IAMAuthenticator
}

// eksAccessEntries is who takes access entries: no program in the cluster.
const eksAccessEntries = "EKS access entries"

// refused is what node-authorizer makes of the callers of a role that
// aws-iam-authenticator lets in, or takes another entry for: it refuses them if an entry
// about the ARN cannot be used. It is zero where there is none.
func refused(sources []*mappingSource, own *mappingSource, arn string) Outcome {
	entry, in := unusableEntry([]*mappingSource{own}, arn)
	value, where := No, ""
	if in == nil {
		entry, in = unusableEntry(sources, arn)
		value = Unknown
	}
	if in == nil {
		return Outcome{}
	}
	if in != own {
		where = " if it asks " + in.name + " before " + own.name
	}
	return Outcome{value, fmt.Sprintf("refuses its nodes%s: the entry at %s cannot be used (%s), and no other entry about this ARN counts",
		where, in.locate(entry.Place), cmp.Or(in.mistake(entry.Place), "see the findings"))}
}

// unusableEntry is the entry about a role that cannot be used, and the source that has it.
func unusableEntry(sources []*mappingSource, arn string) (iam.Mapping, *mappingSource) {
	for _, s := range sources {
		for _, m := range s.mappings.Unusable {
			if arn != "" && (strings.EqualFold(m.ARN, arn) || strings.EqualFold(withoutPath(m.ARN), withoutPath(arn))) {
				return m, s
			}
		}
	}
	return iam.Mapping{}, nil
}

// mistake is what is wrong with the entry at a place; empty if nothing was found.
func (s *mappingSource) mistake(at finding.Place) string {
	for _, f := range s.findings {
		if f.Severity == finding.Error && f.Place.Object == at.Object &&
			(f.Place.Key == at.Key || strings.HasPrefix(f.Place.Key, at.Key+".")) {
			return f.Message
		}
	}
	return ""
}

// takenText says whose outcomes a role's are where that makes a difference.
func (f *RolePrediction) takenText() string {
	switch {
	case f.NodeAuthorizer == (Outcome{}):
		return ""
	case f.Authenticator == IAMAuthenticator:
		return f.Authenticator + ", as on EKS"
	}
	return f.Authenticator
}

// refusedText is what node-authorizer makes of the role's nodes instead.
func (f *RolePrediction) refusedText() string {
	if f.NodeAuthorizer == (Outcome{}) {
		return ""
	}
	return f.NodeAuthorizer.text()
}
