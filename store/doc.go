// Package store has the stores that come with the module.
//
//   - [Memory] keeps the configuration for as long as the process lives.
package store
