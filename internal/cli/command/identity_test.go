package command

import (
	"slices"
	"testing"
)

func TestImpliedGroups(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		user   string
		groups []string
		want   []string
	}{
		{"every user is authenticated", "ada", []string{"dev"}, []string{"dev", "system:authenticated"}},
		{"once", "ada", []string{"system:authenticated"}, []string{"system:authenticated"}},
		{"except the anonymous one", "system:anonymous", nil, []string{"system:unauthenticated"}},
		{"and users in system:unauthenticated", "ada", []string{"system:unauthenticated"}, []string{"system:unauthenticated"}},
		{
			"service accounts are in their groups", "system:serviceaccount:shop:api", nil,
			[]string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"},
		},
		{"unless groups are given", "system:serviceaccount:shop:api", []string{"dev"}, []string{"dev", "system:authenticated"}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := WithImpliedGroups(tc.user, tc.groups); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
