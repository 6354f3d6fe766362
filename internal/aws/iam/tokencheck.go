package iam

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/presigned"
)

// timeFormat and dayFormat are the formats of times in a signed request.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html
const (
	sigV4Time = "20060102T150405Z"
	sigV4Day  = "20060102"
)

// makeRequest checks the values of the parameters and returns the request.
func makeRequest(q presigned.Query, to *address, now time.Time) (*Request, *Refusal) {
	if refusal := cmp.Or(
		refuseQuery(q.CheckCall()),
		checkSignedHeaders(q.Value(presigned.SignedHeaders)),
		checkExpires(q.Value(presigned.Expires)),
	); refusal != nil {
		return nil, refusal
	}
	signed, refusal := readTime(q.Value(presigned.Date), now)
	if refusal != nil {
		return nil, refusal
	}
	key, region, refusal := readCredential(q.Value(presigned.Credential), signed)
	if refusal := cmp.Or(refusal, checkRegion(region, to), checkSignature(q.Value(presigned.Signature))); refusal != nil {
		return nil, refusal
	}
	return &Request{
		Host: to.host, Region: region, AccessKeyID: key, RawQuery: q.Encode(),
		SignedAt: signed, NotAfter: signed.Add(TokenLife),
	}, nil
}

// checkSignedHeaders accepts a list in the form that signers use: unique names in lower
// case, including the host. The text is ASCII, so that there are no look-alike letters.
func checkSignedHeaders(list string) *Refusal {
	names := strings.Split(list, ";")
	for i, name := range names {
		if name == "" || strings.IndexFunc(name, func(r rune) bool { return notInName(r) || 'A' <= r && r <= 'Z' }) >= 0 {
			return Refuse(TokenSignedHeadersMalformed, "signed header %d is not a name in lower case", i+1)
		}
		if slices.Contains(names[:i], name) {
			return Refuse(TokenSignedHeadersMalformed, "signed header %d is repeated", i+1)
		}
	}
	if !slices.Contains(names, "host") {
		return Refuse(TokenSignedHeadersMalformed, "the host is not among the signed headers")
	}
	if !slices.Contains(names, ClusterHeader) {
		return Refuse(TokenClusterNotSigned, "%s is not among the signed headers", ClusterHeader)
	}
	return nil
}

// checkExpires accepts a number without sign and leading zeros.
func checkExpires(value string) *Refusal {
	seconds, err := strconv.Atoi(value)
	if err != nil || strconv.Itoa(seconds) != value || seconds < 0 || seconds > int(TokenLife.Seconds()) {
		return Refuse(TokenExpiresInvalid, "X-Amz-Expires is not a number of seconds from 0 to %.f", TokenLife.Seconds())
	}
	return nil
}

// readTime reads the time of the signature. It formats the result again to reject what
// the parser accepts beyond the format, such as fractions of a second.
func readTime(value string, now time.Time) (time.Time, *Refusal) {
	signed, err := time.Parse(sigV4Time, value)
	switch {
	case err != nil || signed.Format(sigV4Time) != value:
		return time.Time{}, Refuse(TokenDateInvalid, "X-Amz-Date is not in the format YYYYMMDDThhmmssZ")
	case now.After(signed.Add(TokenLife)):
		return time.Time{}, Refuse(TokenTooOld, "the token was signed at %s, and STS accepts it for %.f minutes", value,
			TokenLife.Minutes())
	case signed.After(now.Add(MaxSkew)):
		return time.Time{}, Refuse(TokenFromFuture, "the token was signed at %s, and clocks may be ahead by up to %.f minutes", value,
			MaxSkew.Minutes())
	}
	return signed, nil
}

// readCredential reads KEY/DAY/REGION/sts/aws4_request.
func readCredential(value string, signed time.Time) (key, region string, refusal *Refusal) {
	parts := strings.Split(value, "/")
	if len(parts) != 5 || parts[3] != "sts" || parts[4] != "aws4_request" {
		return "", "", Refuse(TokenCredentialMalformed, "X-Amz-Credential is not KEY/DAY/REGION/sts/aws4_request")
	}
	if !isAccessKeyID(parts[0]) {
		return "", "", Refuse(TokenCredentialMalformed, "X-Amz-Credential does not begin with the id of an access key")
	}
	if parts[1] != signed.Format(sigV4Day) {
		return "", "", Refuse(TokenCredentialOtherDay, "X-Amz-Credential is not of the day of X-Amz-Date")
	}
	return parts[0], parts[2], nil
}

// isAccessKeyID checks the form of an id.
//
// Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_AccessKey.html
func isAccessKeyID(id string) bool {
	odd := func(r rune) bool { return r != '_' && notInName(r) || r == '-' }
	return len(id) >= 16 && len(id) <= 128 && strings.IndexFunc(id, odd) < 0
}

func checkRegion(region string, to *address) *Refusal {
	if !slices.Contains(to.regions, region) {
		return Refuse(TokenWrongRegion, "the token is signed for the region %s, which %s does not serve", shown(region, longestName),
			to.host)
	}
	return nil
}

func checkSignature(value string) *Refusal {
	const digits = 64
	if len(value) != digits || strings.Trim(value, "0123456789abcdef") != "" {
		return Refuse(TokenSignatureMalformed, "X-Amz-Signature is not %d hexadecimal digits in lower case", digits)
	}
	return nil
}
