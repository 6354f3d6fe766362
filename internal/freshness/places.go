package freshness

// places counts the requests that wait, of one node or of all. Whoever may create SubjectAccessReviews can
// ask for any service account and any node. So service accounts together take at most half of the places, and
// one of them a quarter: the others are for the nodes themselves.
type places struct {
	all, accounts int
	byAccount     map[string]int
}

func newPlaces() places { return places{byAccount: map[string]int{}} }

// allow reports whether one more request may wait. The account is empty for a node itself.
func (p *places) allow(account string, most int) bool {
	if p.all >= most || account == "" {
		return p.all < most
	}
	return p.accounts < max(1, most/2) && p.byAccount[account] < max(1, most/4)
}

// take adds to the requests that wait, or subtracts from them.
func (p *places) take(account string, n int) {
	p.all += n
	if account == "" {
		return
	}
	p.accounts += n
	if p.byAccount[account] += n; p.byAccount[account] == 0 {
		delete(p.byAccount, account)
	}
}
