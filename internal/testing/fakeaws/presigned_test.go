package fakeaws_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func TestSTSAcceptsPresignedRequests(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{Role: "nodes", Profile: "arn:aws:iam::111122223333:instance-profile/nodes"})
	client := sts.NewFromConfig(config(cloud.Role(launched.ID), "eu-west-1"), func(o *sts.Options) { o.BaseEndpoint = &cloud.STS.URL })
	signed, err := sts.NewPresignClient(client).PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{},
		func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(smithyhttp.SetHeaderValue("X-Challenge", "abc")))
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, challenge string
		change          func(url.Values)
		status          int
		text            string
	}{
		{"as it was signed", "abc", nil, 200, "assumed-role/nodes/" + launched.ID},
		{"with another value of a signed header", "abd", nil, 403, "SignatureDoesNotMatch"},
		{"without a signed header", "", nil, 403, "SignatureDoesNotMatch"},
		{"with another action", "abc", func(q url.Values) { q.Set("Action", "AssumeRole") }, 403, "SignatureDoesNotMatch"},
		{"too late", "abc", func(q url.Values) {
			q.Set("X-Amz-Date", "20200101T000000Z")
			q.Set("X-Amz-Credential", strings.Replace(q.Get("X-Amz-Credential"), time.Now().UTC().Format("20060102"), "20200101", 1))
		}, 403, "Signature expired"},
	} {
		u, err := url.Parse(signed.URL)
		if err != nil {
			t.Fatal(err)
		}
		if test.change != nil {
			query := u.Query()
			test.change(query)
			u.RawQuery = query.Encode()
		}
		req, err := http.NewRequestWithContext(t.Context(), signed.Method, u.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.challenge != "" {
			req.Header.Set("X-Challenge", test.challenge)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != test.status || !strings.Contains(string(text), test.text) {
			t.Errorf("%s: status %d, %v, %s", test.name, resp.StatusCode, err, text)
		}
	}
}
