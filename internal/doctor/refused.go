package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

// authenticator returns the program for which the roles of a source are predicted.
func (f *rolePredictor) authenticator(s *mappingSource) string {
	switch {
	case s.purposes != nil:
		return eksAccessEntries
	case f.ours:
		return NodeAuthorizer
	}
	return IAMAuthenticator
}

// eksAccessEntries is the authenticator of access entries, which is not a program in the cluster.
const eksAccessEntries = "EKS access entries"

// refused returns the outcome with node-authorizer for callers of a role that aws-iam-authenticator
// authenticates, or for which it uses another entry: node-authorizer refuses them if an entry for the
// ARN is unusable. It returns zero without such an entry.
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

// unusableEntry returns the unusable entry for a role, and its source.
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

// mistake returns the error in the entry at a place; empty without a finding.
func (s *mappingSource) mistake(at finding.Place) string {
	for _, f := range s.findings {
		if f.Severity == finding.Error && f.Place.Object == at.Object &&
			(f.Place.Key == at.Key || strings.HasPrefix(f.Place.Key, at.Key+".")) {
			return f.Message
		}
	}
	return ""
}

// takenText returns the authenticator of the prediction, if that makes a difference.
func (f *RolePrediction) takenText() string {
	switch {
	case f.NodeAuthorizer == (Outcome{}):
		return ""
	case f.Authenticator == IAMAuthenticator:
		return f.Authenticator + ", as on EKS"
	}
	return f.Authenticator
}
