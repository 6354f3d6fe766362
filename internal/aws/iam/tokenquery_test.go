package iam_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestCVE_2022_2385 has parameters twice, in upper and lower case, in both orders.
// aws-iam-authenticator looked at one of them, and STS at the other.
//
// Source: https://nvd.nist.gov/vuln/detail/CVE-2022-2385
func TestCVE_2022_2385(t *testing.T) {
	for _, tc := range []struct{ rule, piece, by string }{
		{"another action after", "Action=GetCallerIdentity", "Action=GetCallerIdentity&action=AssumeRole"},
		{"another action before", "Action=GetCallerIdentity", "action=AssumeRole&Action=GetCallerIdentity"},
		{"the action in lower case, another after", "Action=GetCallerIdentity", "action=GetCallerIdentity&Action=AssumeRole"},
		{"the action in lower case, another before", "Action=GetCallerIdentity", "Action=AssumeRole&action=GetCallerIdentity"},
		{"the same action in another case", "Action=GetCallerIdentity", "Action=GetCallerIdentity&ACTION=GetCallerIdentity"},
		{
			"other signed headers after", "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id",
			"X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&x-amz-signedheaders=host",
		},
		{
			"other signed headers before", "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id",
			"X-Amz-SignedHeaders=host&x-amz-signedheaders=host%3Bx-k8s-aws-id",
		},
		{
			"another credential after", "X-Amz-Credential=" + credential,
			"X-Amz-Credential=" + credential + "&X-Amz-credential=" + credential,
		},
		{
			"another credential before", "X-Amz-Credential=" + credential,
			"x-amz-credential=ASIAEXAMPLE000000002%2F20260301%2Feu-west-1%2Fsts%2Faws4_request&X-Amz-Credential=" + credential,
		},
		{"another date", "X-Amz-Date=20260301T120000Z", "X-Amz-Date=20260301T120000Z&X-AMZ-DATE=20250301T120000Z"},
		{"another life", "X-Amz-Expires=60", "X-Amz-Expires=60&x-amz-expires=604800"},
		{"another signature", "X-Amz-Signature=" + signature, "X-Amz-Signature=" + signature + "&x-amz-signature=" + signature},
		{"another security token", "X-Amz-Security-Token=", "x-amz-security-token=x&X-Amz-Security-Token="},
		{"a parameter in another case that is empty", "X-Amz-Expires=60", "X-Amz-Expires=60&x-amz-expires="},
		{"a parameter that no token has, in two cases", "X-Amz-Expires=60", "X-Amz-Expires=60&Marker=a&marker=b"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refused(t, encode(with(t, tc.piece, tc.by)), commercial(), iam.TokenParameterInTwoCases)
		})
	}
}

// TestUnicodeFolding has characters that become ASCII letters in lower or upper case.
func TestUnicodeFolding(t *testing.T) {
	for _, tc := range []struct {
		rule, piece, by string
		want            verdict.Code
	}{
		{"the Kelvin sign in a signed header", "x-k8s-aws-id", "x-%E2%84%AA8s-aws-id", iam.TokenQueryMalformed},
		{"a long s in a signed header", "x-k8s-aws-id", "x-k8%C5%BF-aw%C5%BF-id", iam.TokenQueryMalformed},
		{"a dotted I in a signed header", "x-k8s-aws-id", "x-k8s-aws-%C4%B0d", iam.TokenQueryMalformed},
		{"the Kelvin sign as it is", "x-k8s-aws-id", "x-\u212a8s-aws-id", iam.TokenNotURL},
		{"a long s as it is", "x-k8s-aws-id", "x-k8\u017f-aws-id", iam.TokenNotURL},
		{"a dotted I as it is", "x-k8s-aws-id", "x-k8s-aws-\u0130d", iam.TokenNotURL},
		{"a long s in the name of a parameter", "X-Amz-Signature", "X-Amz-%C5%BFignature", iam.TokenQueryMalformed},
		{
			"a dotted I in the name of a second action", "Action=GetCallerIdentity",
			"Action=GetCallerIdentity&Act%C4%B0on=AssumeRole", iam.TokenQueryMalformed,
		},
		{"a dotted I in the action", "GetCallerIdentity", "GetCaller%C4%B0dentity", iam.TokenQueryMalformed},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refused(t, encode(with(t, tc.piece, tc.by)), commercial(), tc.want)
		})
	}
}

func TestTheWrongQueryIsRefused(t *testing.T) {
	for _, tc := range []struct {
		rule, piece, by string
		want            verdict.Code
	}{
		{"a name without a value", "&Version=2011-06-15", "&Version=2011-06-15&x", iam.TokenQueryMalformed},
		{"a value without a name", "&Version=2011-06-15", "&=2011-06-15", iam.TokenQueryMalformed},
		{"nothing between two ampersands", "&Version", "&&Version", iam.TokenQueryMalformed},
		{"an ampersand after the end", signature, signature + "&", iam.TokenQueryMalformed},
		{"a semicolon between parameters", "&Version", ";Version", iam.TokenQueryMalformed},
		{"a semicolon that is not encoded", "host%3Bx-k8s-aws-id", "host;x-k8s-aws-id", iam.TokenQueryMalformed},
		{"a plus sign, which some take for a space", "%2Btoken", "+token", iam.TokenQueryMalformed},
		{"a name that is encoded", "Action=", "%41ction=", iam.TokenQueryMalformed},
		{"a second action whose name is encoded", "&Version", "&%41ction=AssumeRole&Version", iam.TokenQueryMalformed},
		{"a second action whose name ends in a zero byte", "&Version", "&Action%00=AssumeRole&Version", iam.TokenQueryMalformed},
		{"a second action whose name begins with a space", "&Version", "&%20Action=AssumeRole&Version", iam.TokenQueryMalformed},
		{"a name with brackets, as for arrays", "&Version", "&Action[]=AssumeRole&Version", iam.TokenQueryMalformed},
		{"a name with an underscore for a dash", "&Version", "&X_Amz_Date=1&Version", iam.TokenQueryMalformed},
		{"half an encoded byte", "GetCallerIdentity", "GetCallerIdentity%4", iam.TokenQueryMalformed},
		{"an encoded byte that is none", "GetCallerIdentity", "GetCallerIdentity%zz", iam.TokenQueryMalformed},
		{"a zero byte", "GetCallerIdentity", "GetCallerIdentity%00", iam.TokenQueryMalformed},
		{"a zero byte, and another action before it", "GetCallerIdentity", "AssumeRole%00GetCallerIdentity", iam.TokenQueryMalformed},
		{"a line break", "GetCallerIdentity", "GetCallerIdentity%0d%0a", iam.TokenQueryMalformed},
		{"an encoded space", "X-Amz-Expires=60", "X-Amz-Expires=60%20", iam.TokenQueryMalformed},
		{"invalid UTF-8", "GetCallerIdentity", "GetCallerIdentity%ff", iam.TokenQueryMalformed},
		{"an ASCII letter in two bytes", "GetCallerIdentity", "%c1%87etCallerIdentity", iam.TokenQueryMalformed},

		{"an action twice", "Action=GetCallerIdentity", "Action=GetCallerIdentity&Action=AssumeRole", iam.TokenParameterTwice},
		{"the same action twice", "Action=GetCallerIdentity", "Action=GetCallerIdentity&Action=GetCallerIdentity", iam.TokenParameterTwice},
		{
			"signed headers twice, so that they are two lists or one", "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id",
			"X-Amz-SignedHeaders=host&X-Amz-SignedHeaders=x-k8s-aws-id", iam.TokenParameterTwice,
		},
		{"a date twice", "X-Amz-Date=20260301T120000Z", "X-Amz-Date=20260301T120000Z&X-Amz-Date=20250301T120000Z", iam.TokenParameterTwice},

		{"an empty action", "Action=GetCallerIdentity", "Action=", iam.TokenParameterEmpty},
		{"an empty signature", signature, "", iam.TokenParameterEmpty},
		{"an empty security token", "IQoJb3JpZ2luX2VjEXAMPLE%2Fsecret%2Btoken%3D%3D", "", iam.TokenParameterEmpty},
		{"an empty parameter that tokens do not have", "&Version", "&RoleArn=&Version", iam.TokenParameterEmpty},

		{
			"an argument of another action", "&Version", "&RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fnode&Version",
			iam.TokenParameterNotAllowed,
		},
		{"a parameter of SigV4a", "&Version", "&X-Amz-Region-Set=*&Version", iam.TokenParameterNotAllowed},
		{"a parameter of another service", "&Version", "&x-id=GetCallerIdentity&Version", iam.TokenParameterNotAllowed},
		{"the cluster's header as a parameter", "&Version", "&x-k8s-aws-id=blue&Version", iam.TokenParameterNotAllowed},
		{"a second question mark", "/?", "/??", iam.TokenQueryMalformed},

		{"nothing", goodQuery, "", iam.TokenParameterMissing},
		{"no action", "Action=GetCallerIdentity&", "", iam.TokenParameterMissing},
		{"no version", "&Version=2011-06-15", "", iam.TokenParameterMissing},
		{"no algorithm", "&X-Amz-Algorithm=AWS4-HMAC-SHA256", "", iam.TokenParameterMissing},
		{"no credential", "&X-Amz-Credential=" + credential, "", iam.TokenParameterMissing},
		{"no date", "&X-Amz-Date=20260301T120000Z", "", iam.TokenParameterMissing},
		{"no life", "&X-Amz-Expires=60", "", iam.TokenParameterMissing},
		{"no signed headers", "&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id", "", iam.TokenParameterMissing},
		{"no signature", "&X-Amz-Signature=" + signature, "", iam.TokenParameterMissing},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refused(t, encode(with(t, tc.piece, tc.by)), commercial(), tc.want)
		})
	}
}

func TestInvalidValueIsRefused(t *testing.T) {
	for _, tc := range []struct {
		rule, piece, by string
		want            verdict.Code
	}{
		{"another action", "GetCallerIdentity", "AssumeRole", iam.TokenWrongAction},
		{"the action in another case", "GetCallerIdentity", "getcalleridentity", iam.TokenWrongAction},
		{"an action and more", "GetCallerIdentity", "GetCallerIdentity%26Action%3DAssumeRole", iam.TokenWrongAction},
		{"an action and an equals sign", "GetCallerIdentity", "GetCallerIdentity=", iam.TokenWrongAction},
		{"an action that is encoded twice", "GetCallerIdentity", "GetCaller%2549dentity", iam.TokenWrongAction},
		{"a secret in place of the action", "GetCallerIdentity", securityToken[:22] + "hunter2hunter2", iam.TokenWrongAction},
		{"another version", "2011-06-15", "2010-05-08", iam.TokenWrongVersion},
		{"another algorithm", "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", iam.TokenWrongAlgorithm},
		{"the algorithm none", "AWS4-HMAC-SHA256", "none", iam.TokenWrongAlgorithm},

		{"the cluster is not signed", "host%3Bx-k8s-aws-id", "host", iam.TokenClusterNotSigned},
		{"a longer header is signed", "x-k8s-aws-id", "x-k8s-aws-id-2", iam.TokenClusterNotSigned},
		{"the cluster's header with dashes left out", "x-k8s-aws-id", "xk8sawsid", iam.TokenClusterNotSigned},
		{"the cluster's header in upper case", "x-k8s-aws-id", "X-K8s-Aws-Id", iam.TokenSignedHeadersMalformed},
		{"the host is not signed", "host%3Bx-k8s-aws-id", "x-k8s-aws-id", iam.TokenSignedHeadersMalformed},
		{"a header twice", "host%3Bx-k8s-aws-id", "host%3Bx-k8s-aws-id%3Bx-k8s-aws-id", iam.TokenSignedHeadersMalformed},
		{"an empty header", "host%3Bx-k8s-aws-id", "host%3B%3Bx-k8s-aws-id", iam.TokenSignedHeadersMalformed},
		{"a semicolon after the end", "host%3Bx-k8s-aws-id", "host%3Bx-k8s-aws-id%3B", iam.TokenSignedHeadersMalformed},
		{"commas between headers", "host%3Bx-k8s-aws-id", "host,x-k8s-aws-id", iam.TokenSignedHeadersMalformed},
		{"a header with its value", "x-k8s-aws-id", "x-k8s-aws-id%3Ashop", iam.TokenSignedHeadersMalformed},

		{"it expires after more than 15 minutes", "X-Amz-Expires=60", "X-Amz-Expires=901", iam.TokenExpiresInvalid},
		{"it expires before it is signed", "X-Amz-Expires=60", "X-Amz-Expires=-1", iam.TokenExpiresInvalid},
		{"minus zero", "X-Amz-Expires=60", "X-Amz-Expires=-0", iam.TokenExpiresInvalid},
		{"an encoded plus sign before a number", "X-Amz-Expires=60", "X-Amz-Expires=%2B60", iam.TokenExpiresInvalid},
		{"zeros before a number", "X-Amz-Expires=60", "X-Amz-Expires=060", iam.TokenExpiresInvalid},
		{"a fraction", "X-Amz-Expires=60", "X-Amz-Expires=60.5", iam.TokenExpiresInvalid},
		{"an exponent", "X-Amz-Expires=60", "X-Amz-Expires=6e1", iam.TokenExpiresInvalid},
		{"hexadecimal digits", "X-Amz-Expires=60", "X-Amz-Expires=0x3c", iam.TokenExpiresInvalid},
		{"an underscore in a number", "X-Amz-Expires=60", "X-Amz-Expires=6_0", iam.TokenExpiresInvalid},
		{"a number that is too large to read", "X-Amz-Expires=60", "X-Amz-Expires=18446744073709551676", iam.TokenExpiresInvalid},
		{"not a number", "X-Amz-Expires=60", "X-Amz-Expires=never", iam.TokenExpiresInvalid},

		{"a date in another form", "20260301T120000Z", "2026-03-01T12:00:00Z", iam.TokenDateInvalid},
		{"a date with a fraction", "20260301T120000Z", "20260301T120000.5Z", iam.TokenDateInvalid},
		{"a date with a fraction after a comma", "20260301T120000Z", "20260301T120000,5Z", iam.TokenDateInvalid},
		{"a date in another time zone", "20260301T120000Z", "20260301T130000%2B0100", iam.TokenDateInvalid},
		{"a date without a zone", "20260301T120000Z", "20260301T120000", iam.TokenDateInvalid},
		{"a date in lower case", "20260301T120000Z", "20260301t120000z", iam.TokenDateInvalid},
		{"a day that does not exist", "20260301T120000Z", "20260230T120000Z", iam.TokenDateInvalid},
		{"a minute of 60 seconds", "20260301T120000Z", "20260301T115960Z", iam.TokenDateInvalid},
		{"seconds since 1970", "20260301T120000Z", "1772366400", iam.TokenDateInvalid},
		{"16 minutes ago", "20260301T120000Z", "20260301T114500Z", iam.TokenTooOld},
		{"15 minutes and a second ago", "20260301T120000Z", "20260301T114559Z", iam.TokenTooOld},
		{"the year 1", "20260301T120000Z", "00010101T000000Z", iam.TokenTooOld},
		{"5 minutes and a second ahead", "20260301T120000Z", "20260301T120601Z", iam.TokenFromFuture},
		{"years ahead", "20260301T120000Z", "20990301T120000Z", iam.TokenFromFuture},
		{"the year 9999", "20260301T120000Z", "99991231T235959Z", iam.TokenFromFuture},

		{"a credential with a missing part", credential, accessKey + "%2F20260301%2Feu-west-1%2Fsts", iam.TokenCredentialMalformed},
		{"a credential with a slash in its key", credential, "x%2F" + credential, iam.TokenCredentialMalformed},
		{"a credential with a slash after it", credential, credential + "%2F", iam.TokenCredentialMalformed},
		{"a credential without a key", credential, strings.TrimPrefix(credential, accessKey), iam.TokenCredentialMalformed},
		{"a key that is too short", accessKey, "ASIA", iam.TokenCredentialMalformed},
		{"a key that is too long", accessKey, strings.Repeat("A", 129), iam.TokenCredentialMalformed},
		{"a key with a user name", accessKey, "system:node:a01234567", iam.TokenCredentialMalformed},
		{"a key with a template", accessKey, "%7B%7BSessionName%7D%7D", iam.TokenCredentialMalformed},
		{"a credential for another service", "%2Fsts%2F", "%2Fiam%2F", iam.TokenCredentialMalformed},
		{"a credential of another version", "aws4_request", "aws5_request", iam.TokenCredentialMalformed},
		{"a credential that is encoded twice", credential, strings.ReplaceAll(credential, "%2F", "%252F"), iam.TokenCredentialMalformed},
		{"a credential of another day", "%2F20260301%2F", "%2F20260302%2F", iam.TokenCredentialOtherDay},
		{"a credential of no day", "%2F20260301%2F", "%2F%2F", iam.TokenCredentialOtherDay},
		{"signed for another region than the host's", "%2Feu-west-1%2F", "%2Fus-east-1%2F", iam.TokenWrongRegion},
		{"signed for the GovCloud", "%2Feu-west-1%2F", "%2Fus-gov-west-1%2F", iam.TokenWrongRegion},
		{"signed for no region", "%2Feu-west-1%2F", "%2F%2F", iam.TokenWrongRegion},
		{"signed for the region in upper case", "%2Feu-west-1%2F", "%2FEU-WEST-1%2F", iam.TokenWrongRegion},
		{"signed for all regions", "%2Feu-west-1%2F", "%2F*%2F", iam.TokenWrongRegion},

		{"a signature that is too short", signature, signature[1:], iam.TokenSignatureMalformed},
		{"a signature that is too long", signature, strings.Repeat(signature, 20), iam.TokenSignatureMalformed},
		{"a signature in upper case", signature, strings.ToUpper(signature), iam.TokenSignatureMalformed},
		{"a signature that is no number", signature, signature[1:] + "g", iam.TokenSignatureMalformed},
		{"a signature with something in the middle", signature, signature[:32] + "-" + signature[33:], iam.TokenSignatureMalformed},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refused(t, encode(with(t, tc.piece, tc.by)), commercial(), tc.want)
		})
	}
}
