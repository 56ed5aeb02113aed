// Package queue is the tables of the notifications as package line asks for them. Nothing uses it
// yet but its tests, which run in a module of their own, because they need an engine.
package queue
