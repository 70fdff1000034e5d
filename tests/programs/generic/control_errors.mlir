// Errors, asynchrony and cancellation in calls and branches, in the generic form.

// CHECK-LABEL: --- Running 'call_of_an_error':
// CHECK-NEXT: 'call_of_an_error' returned <<error: something bad happened>>
func.func @pass(%x: i32) -> i32 {
  "tfrt.return"(%x) : (i32) -> ()
}
func.func @call_of_an_error() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{runtime error: something bad happened}}
  %y = "tfrt.call"(%x) {callee = @pass} : (i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}

// CHECK-LABEL: --- Running 'if_of_an_error':
// CHECK-NEXT: 'if_of_an_error' returned <<error: something bad happened>>
func.func @if_of_an_error() -> i32 {
  %yes = "tfrt.constant.i1"() {value = true} : () -> i1
  %x = "tfrt_test.fail"() : () -> i32 // expected-error {{runtime error: something bad happened}}
  %y = "tfrt.if"(%yes, %x) ({
  ^bb0(%a: i32):
    "tfrt.return"(%a) : (i32) -> ()
  }, {
  ^bb0(%a: i32):
    "tfrt.return"(%a) : (i32) -> ()
  }) : (i1, i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}

// CHECK-LABEL: --- Running 'if_of_a_late_value':
// CHECK-NEXT: 'if_of_a_late_value' returned 4
func.func @if_of_a_late_value() -> i32 {
  %no = "tfrt.constant.i1"() {value = false} : () -> i1
  %x = "tfrt_test.async_constant.i32"() {value = 2 : i32} : () -> i32
  %y = "tfrt.if"(%no, %x) ({
  ^bb0(%a: i32):
    "tfrt.return"(%a) : (i32) -> ()
  }, {
  ^bb0(%a: i32):
    %b = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
    "tfrt.return"(%b) : (i32) -> ()
  }) : (i1, i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}

// CHECK-LABEL: --- Running 'nonstrict_call':
// CHECK-NEXT: 'nonstrict_call' returned 7
func.func @first(%a: i32, %b: i32) -> i32 {
  "tfrt.return"(%a) : (i32) -> ()
}
func.func @nonstrict_call() -> i32 {
  %a = "tfrt.constant.i32"() {value = 7 : i32} : () -> i32
  %b = "tfrt_test.fail"() : () -> i32 // expected-error {{runtime error: something bad happened}}
  %y = "tfrt.call"(%a, %b) {bef.nonstrict, callee = @first} : (i32, i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}

// CHECK-LABEL: --- Running 'cancelled':
// CHECK-NEXT: 'cancelled' returned <<error: Cancelled>>
func.func @cancelled() -> i32 {
  %c = "tfrt.new.chain"() : () -> !tfrt.chain
  %x, %d = "tfrt_test.cancel"(%c) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %y = "tfrt.call"(%x) {callee = @pass} : (i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}
