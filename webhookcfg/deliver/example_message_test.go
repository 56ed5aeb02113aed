package deliver_test

import (
	"fmt"
	"strconv"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// A change that is enqueued twice has one ID, so its receiver processes it once.
func ExampleMessageID() {
	const client, entity, version = "acme", "e1", 7
	m := deliver.Message{
		ID:   deliver.MessageID(client, entity, strconv.Itoa(version)),
		Body: []byte(`{"type":"module.updated","data":{"id":"e1","version":7}}`),
	}
	fmt.Println(m.ID, m.Validate())
	// Output: msg_d0ce899a403d54507ecc67db5d167037 <nil>
}
