// Package admin is for the operators of a service: it works on any [webhookcfg.Store] that
// is also a [webhookcfg.Lister].
//
// [Audit] finds the webhooks that a policy refuses.
package admin
