// Functions of nested modules belong to the program, in the order of the text.
// CHECK: --- Running 'first':
// CHECK-NEXT: --- Running 'second':
// CHECK-NEXT: --- Running 'third':
module @outer {
  func.func @first() { "tfrt.return"() : () -> () }
  module @inner attributes {some.note = "kept"} {
    func.func @second() { "tfrt.return"() : () -> () }
  }
  func.func @third() { "tfrt.return"() : () -> () }
}
