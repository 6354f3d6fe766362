// Package inventory records what attack paths are computed from: what runs where and with
// which rights over its host, which namespaces, accounts and secrets exist, and what admission
// checks.
//
// Fill an [Inventory] with [Inventory.Set]. It keeps names and the few fields
// that decide how far the holder of an object gets, never the data of a secret, the value of an
// environment variable or a command.
package inventory
