package freshness

import "container/list"

// places are the requests that wait, of one node or of all, in the order in which they came. A user who may
// create SubjectAccessReviews can ask for any service account and any node. So service accounts together take
// at most half of the places, and one of them a quarter: the others are for the nodes themselves. When a bound
// is reached, the oldest request within it gives way to the new one. Lags are mostly much shorter than the time
// limit of a wait, so a request that gives way to many others has waited long enough for nearly all of them.
type places struct {
	all, accounts list.List
	byAccount     map[string]*list.List
}

func newPlaces() *places { return &places{byAccount: map[string]*list.List{}} }

// bound is a limit for some of the requests that wait.
type bound struct {
	waiting *list.List
	most    int
}

// bounds are the limits for requests of an account, or of a node itself if it is empty: the narrowest first.
func (p *places) bounds(account string, most int) []bound {
	all := bound{&p.all, most}
	if account == "" {
		return []bound{all}
	}
	own := p.byAccount[account]
	if own == nil {
		own = list.New()
	}
	return []bound{{own, max(1, most/4)}, {&p.accounts, max(1, most/2)}, all}
}

// givesWay returns the request that has to go before one more may wait; nil if there is a place.
func (p *places) givesWay(account string, most int) *waiter {
	for _, b := range p.bounds(account, most) {
		if b.waiting.Len() >= b.most {
			return b.waiting.Front().Value.(*waiter)
		}
	}
	return nil
}

// take adds a request. The returned function removes it.
func (p *places) take(t *waiter) (leave func()) {
	all := p.all.PushBack(t)
	if t.account == "" {
		return func() { p.all.Remove(all) }
	}
	own := p.byAccount[t.account]
	if own == nil {
		own = list.New()
		p.byAccount[t.account] = own
	}
	account, mine := p.accounts.PushBack(t), own.PushBack(t)
	return func() {
		p.all.Remove(all)
		p.accounts.Remove(account)
		if own.Remove(mine); own.Len() == 0 {
			delete(p.byAccount, t.account)
		}
	}
}
