package iam

import "github.com/node-authorizer/node-authorizer/internal/aws/presigned"

// tokenRules are the rules for the query of a token. Clients write "Action" and
// "X-Amz-Date"; names match in any case, as in aws-iam-authenticator. A token that is
// signed with the long-term credentials of a user has no security token.
func tokenRules() presigned.Rules {
	return presigned.Rules{
		Required: []string{
			presigned.Action, presigned.Version, presigned.Algorithm, presigned.Credential, presigned.Date, presigned.Expires,
			presigned.Signature, presigned.SignedHeaders,
		},
		Optional: []string{presigned.SecurityToken},
	}
}

// readQuery reads a query. Each allowed parameter must be there once and have a value.
func readQuery(query string) (presigned.Query, *Refusal) {
	parsed, problem := presigned.Parse(query, tokenRules())
	return parsed, refuseQuery(problem)
}

// refuseQuery returns the refusal for a problem of a query, or nil.
func refuseQuery(p *presigned.Problem) *Refusal {
	if p == nil {
		return nil
	}
	switch p.Kind {
	case presigned.Twice:
		return Refuse(TokenParameterTwice, "the query has %s twice", shown(p.Name, longestName))
	case presigned.InTwoCases:
		return Refuse(TokenParameterInTwoCases, "the query has %s and %s", shown(p.Earlier, longestName), shown(p.Name, longestName))
	case presigned.Empty:
		return Refuse(TokenParameterEmpty, "%s has no value", shown(p.Name, longestName))
	case presigned.NotAllowed:
		return Refuse(TokenParameterNotAllowed, "tokens have no parameter %s", shown(p.Name, longestName))
	case presigned.Missing:
		return Refuse(TokenParameterMissing, "the query has no %s", p.Parameter)
	case presigned.WrongValue:
		return refuseValue(p)
	}
	return Refuse(TokenQueryMalformed, "parameter %d of the query is not NAME=VALUE without needless encoding", p.Position)
}

// refuseValue returns the refusal for a parameter with a wrong value.
func refuseValue(p *presigned.Problem) *Refusal {
	code, what := TokenWrongAction, "action"
	switch p.Parameter {
	case presigned.Version:
		code, what = TokenWrongVersion, "version"
	case presigned.Algorithm:
		code, what = TokenWrongAlgorithm, "algorithm"
	}
	return Refuse(code, "the %s is %s, and must be %q", what, shown(p.Value, longestName), p.Want)
}
