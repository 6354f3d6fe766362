// Package containment follows the custom resources NodeScope and Quarantine, and publishes what
// the servers enforce: a [nodescope.Policy] and a [quarantine.Set].
//
// A NodeScope whose new generation is not valid keeps its last valid one in use. If it never had
// one, it refuses the requests of its accounts, provided that it says Enforce. A quarantine that
// is not valid keeps its last valid generation too. What has never been read, or is older than
// it may be, is an error for those who ask, see [Live.Fresh].
//
// Users who may create these objects can create many, large and broken ones. Lists are read in pages,
// only small specs are kept, the sizes of all specs have a bound, and the oldest objects count first.
// Of a NodeScope that is too large, the mode and the subjects are kept, which the custom resource
// bounds. A spec for which there is room again is used after the next list. A flood of changes is
// compiled in batches; a single change takes effect at once.
//
// The server also reports the outcome of each object, in a status condition and, if it is broken,
// in an Event. All replicas compute the same, and the first one writes it.
package containment
