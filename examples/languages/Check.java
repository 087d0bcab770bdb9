// Three requests of one user, under a limit of two a minute: java Check.java
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.UUID;
import java.util.regex.Pattern;

public class Check {
  private static final Duration timeout =
      Duration.ofSeconds(Integer.parseInt(System.getenv().getOrDefault("SLUICE_TIMEOUT", "1")));
  private static final HttpClient client =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(timeout).build();
  private static final String server = System.getenv().getOrDefault("SLUICE_SERVER", "http://127.0.0.1:8080");
  private static final String token = System.getenv("SLUICE_API_TOKEN");

  /** Asks twice at most. The id makes the second try safe: one request is charged once. */
  static String check(String user) throws IOException, InterruptedException {
    var body = "{\"attributes\":{\"user\":\"%s\"},\"cost\":1,\"id\":\"%s\"}".formatted(user, UUID.randomUUID());
    try {
      return ask(body);
    } catch (IOException lostAnswer) {
      return ask(body);
    }
  }

  static String ask(String body) throws IOException, InterruptedException {
    var request = HttpRequest.newBuilder(URI.create(server + "/v1/check"))
        .timeout(timeout)
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body));
    if (token != null) request.header("Authorization", "Bearer " + token);
    var response = client.send(request.build(), BodyHandlers.ofString());
    if (response.statusCode() != 200) throw new IllegalStateException(response.body());
    return response.body();
  }

  /** The JDK reads no JSON: use the library that your program has. The first field of a name is the decision's own. */
  static String field(String decision, String name) {
    var found = Pattern.compile("\"" + name + "\":\"?([^\",}]+)").matcher(decision);
    return found.find() ? found.group(1) : "";
  }

  public static void main(String[] args) throws InterruptedException {
    for (int i = 0; i < 3; i++) {
      try {
        var decision = check("42");
        if (field(decision, "allowed").equals("true")) {
          System.out.println("allowed, " + field(decision, "remaining") + " left");
        } else {
          System.out.println("refused by " + field(decision, "rule"));
        }
      } catch (IOException noAnswer) {
        // No answer is not a refusal: this program lets the request pass. A login form would not.
        System.out.println("not asked, passes");
      }
    }
  }
}
