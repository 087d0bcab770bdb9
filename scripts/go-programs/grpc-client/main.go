// A client by gRPC for Go. grpcurl would be one, and takes four minutes to build, for it brings Envoy's control plane along.
//
// In: an address, and what to do: `list` prints the services that reflection knows, `describe MESSAGE` the fields of a message by reflection,
// read as strictly as Go's own descriptors, `check NAME` the health of a service, `call METHOD HEX` the answer of a unary method to a
// message, both in hexadecimal digits.
package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, what string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	connection, err := grpc.DialContext(ctx, address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	switch what {
	case "list":
		return list(ctx, connection)
	case "describe":
		return describe(ctx, connection, args[0])
	case "check":
		return check(ctx, connection, args[0])
	default:
		return call(ctx, connection, args[0], args[1])
	}
}

func list(ctx context.Context, connection *grpc.ClientConn) error {
	stream, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	everything := &reflection.ServerReflectionRequest_ListServices{}
	if err := stream.Send(&reflection.ServerReflectionRequest{MessageRequest: everything}); err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		fmt.Println(service.GetName())
	}
	return stream.CloseSend()
}

func describe(ctx context.Context, connection *grpc.ClientConn, message string) error {
	stream, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	files := map[string]*descriptorpb.FileDescriptorProto{}
	ask := func(request *reflection.ServerReflectionRequest) error {
		if err := stream.Send(request); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		if failure := answer.GetErrorResponse(); failure != nil {
			return fmt.Errorf("%s", failure.GetErrorMessage())
		}
		for _, bytes := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(bytes, file); err != nil {
				return err
			}
			files[file.GetName()] = file
		}
		return nil
	}
	symbol := &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: message}
	if err := ask(&reflection.ServerReflectionRequest{MessageRequest: symbol}); err != nil {
		return err
	}
	// As grpcurl does: what a file imports and the answer did not hold is asked for by its name.
	for missing := missingFrom(files); missing != ""; missing = missingFrom(files) {
		name := &reflection.ServerReflectionRequest_FileByFilename{FileByFilename: missing}
		if err := ask(&reflection.ServerReflectionRequest{MessageRequest: name}); err != nil {
			return err
		}
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, file := range files {
		set.File = append(set.File, file)
	}
	known, err := protodesc.NewFiles(set)
	if err != nil {
		return err
	}
	found, err := known.FindDescriptorByName(protoreflect.FullName(message))
	if err != nil {
		return err
	}
	fields := found.(protoreflect.MessageDescriptor).Fields()
	for i := 0; i < fields.Len(); i++ {
		fmt.Println(fields.Get(i).Number(), fields.Get(i).Name(), fields.Get(i).Kind())
	}
	return stream.CloseSend()
}

func missingFrom(files map[string]*descriptorpb.FileDescriptorProto) string {
	for _, file := range files {
		for _, name := range file.GetDependency() {
			if files[name] == nil {
				return name
			}
		}
	}
	return ""
}

func check(ctx context.Context, connection *grpc.ClientConn, name string) error {
	client := grpc_health_v1.NewHealthClient(connection)
	answer, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
	if err == nil {
		fmt.Println(answer.GetStatus())
	}
	return err
}

// Messages as they are: what is in them is no concern of the transport.
type plain struct{}

func (plain) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }
func (plain) Name() string                        { return "proto" }
func (plain) Unmarshal(bytes []byte, message any) error {
	*message.(*[]byte) = bytes
	return nil
}

func call(ctx context.Context, connection *grpc.ClientConn, method, digits string) error {
	request, err := hex.DecodeString(digits)
	if err != nil {
		return err
	}
	var answer []byte
	if err := connection.Invoke(ctx, method, &request, &answer, grpc.ForceCodec(plain{})); err != nil {
		return err
	}
	fmt.Println(hex.EncodeToString(answer))
	return nil
}
